"""The threads in which the planner and the guard decide and act, repeatedly."""
