"""A posterior as one page for a browser: verdict, paths, pictures, and how it was made."""

from pathmix.report.page import page, write_page

__all__ = ["page", "write_page"]
