"""Ways to infer a posterior over paths."""
