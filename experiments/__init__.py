"""The evaluation of the SDVI paper, one module for each experiment."""
