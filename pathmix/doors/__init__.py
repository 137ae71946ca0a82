"""What is used of each library beyond its public interface: one door each, with the reason.

Everything here may change with a new version of the library; `tests/doors` says what broke.
"""
