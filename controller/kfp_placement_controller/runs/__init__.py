"""One run: its object read, its pods, what happened to its steps, what it needs."""
