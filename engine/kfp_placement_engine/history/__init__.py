"""Run times learned from the runs before: what has ended is observed, what is planned is predicted.

>>> history = History("team-a")
>>> history.observe([Observation(StepIdentity("train-all", "train"), seconds=92.0)])
>>> forecast = history.predict(StepIdentity("train-all", "train"))
>>> forecast.distribution.quantile(0.95), forecast.basis.runs

Pure: it knows observations (`model.history`) and distributions (`model.forecast`), and neither
clock nor cluster.
"""

from kfp_placement_engine.history.history import History
from kfp_placement_engine.history.memory import MemoryHistory
from kfp_placement_engine.history.node_factors import NodeFactors
from kfp_placement_engine.history.past import Past
from kfp_placement_engine.history.run_ends import RunEnds

__all__ = ["History", "MemoryHistory", "NodeFactors", "Past", "RunEnds"]
