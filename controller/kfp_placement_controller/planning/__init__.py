"""Decisions of the planner. Nothing here calls an API, starts a thread or reads a clock."""
