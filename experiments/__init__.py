"""The evaluation of the SDVI paper, one module for each experiment."""

# What the paper has where this library has other defaults.
PAPER = {"weights": "elbo", "guide": "meanfield", "starts": 1}
DEFAULTS = "SDVI (defaults)"  # the library as it comes, for comparison
