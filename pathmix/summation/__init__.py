"""Discrete sites that decide nothing, summed out of a path's density and drawn again for its posterior."""
