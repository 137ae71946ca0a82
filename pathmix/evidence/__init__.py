"""Evidences of paths, with their errors: importance sampling, and tempered SMC where it is not enough."""
