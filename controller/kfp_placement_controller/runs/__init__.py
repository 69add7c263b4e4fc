"""One run: its graph, its pods, the states of its steps, its plan, and what it needs."""
