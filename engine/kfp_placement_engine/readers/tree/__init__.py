"""A run as a tree of tasks, its expansion to steps, and the outcomes of the steps."""
