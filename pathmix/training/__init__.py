"""Fitting guides to paths."""
