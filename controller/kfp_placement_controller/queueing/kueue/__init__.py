"""The backend that lets Kueue admit runs: a Workload for each run, followed and corrected."""
