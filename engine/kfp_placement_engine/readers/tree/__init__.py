"""A run as a tree of tasks, and its expansion to steps."""
