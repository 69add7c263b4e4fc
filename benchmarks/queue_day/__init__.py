"""A day of runs on a cluster, simulated with and without a queue of whole runs."""
