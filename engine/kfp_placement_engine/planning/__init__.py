"""Planning: plans of runs, with the reasons for each placement and the limits of each run."""
