"""The search for a good plan: simulation, baselines and the genetic algorithm."""
