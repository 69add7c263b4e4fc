"""Run times and ends learned from the runs before: what has ended is observed, then predicted.

>>> past = Past([PastRun(uid="1", pipeline="train-all", ended_at=..., steps=(
...     PastStep(StepIdentity("train-all", "train"), seconds=92.0),))])
>>> past.steps.predict(StepIdentity("train-all", "train")).times.high_seconds
>>> past.ends.of("train-all").predict(planned_seconds=300.0)

Pure: it knows past runs (`model.history`) and ranges (`model.promise`), and neither clock nor
cluster.
"""

from kfp_placement_engine.history.memory_use import MemoryHistory
from kfp_placement_engine.history.past import Past
from kfp_placement_engine.history.run_ends import PipelineEnds, RunEnds
from kfp_placement_engine.history.step_times import StepTimes

__all__ = ["MemoryHistory", "Past", "PipelineEnds", "RunEnds", "StepTimes"]
