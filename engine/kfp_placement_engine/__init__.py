"""The planner: run graph and cluster in, placement and schedule out."""
