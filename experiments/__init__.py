"""The evaluation of the SDVI paper, one module for each experiment."""

DEFAULTS = "SDVI (defaults)"  # the library as it comes, for comparison
