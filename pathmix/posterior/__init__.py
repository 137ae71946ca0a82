"""The result of inference, and what a user does with it."""
