"""From the conditions of a path to the region of values that satisfy them."""
