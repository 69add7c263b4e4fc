"""The past runs in stored histories, as the past of a pipeline's next runs.

A namespace may hold a million past steps, of which a run needs few. So of all pipelines together
only the last runs count: they say how long similar steps take, and how far forecasts are off. Of
the planned pipeline all runs count. The planner in the cluster does the same, so that it promises
what was promised before submission.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun

RUNS_OF_EACH, RUNS_OF_ALL = RECENT, 200
"""Numbers of last runs, of each pipeline and of all, that stand for a namespace.

Older runs of a pipeline say little about its present times.
"""


def past_of(
    histories: Sequence[PipelineHistory], pipeline: str, keep_days: int | None = None
) -> Past:
    """Return the past for the next runs of a pipeline.

    Args:
        histories: histories of the namespace.
        pipeline: name of the pipeline.
        keep_days: age in days up to which runs count; None = all runs count.
    """
    last = last_runs(each.ended for each in histories)
    of_namespace, of_pipeline = list[PastRun](), list[PastRun]()
    for each in histories:
        runs = each.past_runs(keep_days)
        of_namespace += (run for run in runs if run.uid in last)
        if each.spec.pipeline == pipeline:
            of_pipeline += runs
    return Past(of_pipeline, Past(of_namespace), MemoryHistory())


def last_runs(ended: Iterable[Mapping[str, datetime]]) -> frozenset[str]:
    """Return the uids of the last runs of each recent pipeline, and of the last runs of all.

    Args:
        ended: uid -> end of a run, one mapping for each pipeline of a namespace.
    """
    ran = sorted(filter(None, ended), key=lambda runs: max(runs.values()))[-MOST_PIPELINES:]
    of_all = {uid: at for runs in ran for uid, at in runs.items()}
    of_each = (uid for runs in ran for uid in _latest(runs, RUNS_OF_EACH))
    return frozenset((*of_each, *_latest(of_all, RUNS_OF_ALL)))


def _latest(ended: Mapping[str, datetime], most: int) -> list[str]:
    return sorted(ended, key=lambda uid: (ended[uid], uid))[-most:]
