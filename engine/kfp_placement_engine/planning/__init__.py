"""Plans of runs, and why they are as they are."""
