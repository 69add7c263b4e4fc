"""A run as a tree of tasks with expressions, and the outcomes of its steps."""
