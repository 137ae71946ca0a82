"""Languages that programs are written in: how they are run, and how a path becomes a straight line."""
