"""The command line: fit, resume, report, paths, demo."""
