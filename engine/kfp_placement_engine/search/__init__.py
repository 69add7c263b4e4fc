"""What decides: simulation, baselines, the genetic algorithm."""
