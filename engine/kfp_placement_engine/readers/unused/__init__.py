"""Fields of a run's file that its plan does not use: lists by type, and notices about them."""
