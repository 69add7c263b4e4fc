"""Plans of a run after changes to the run or its cluster."""
