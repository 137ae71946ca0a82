"""The programs, a file for each family."""
