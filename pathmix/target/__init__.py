"""The density of a path on an unconstrained vector: what guides and chains work on."""
