"""A program, its runs, and what becomes of one path: a straight-line program."""
