"""Lower bounds of the makespan: times that no schedule can beat."""
