"""What the past runs that histories hold tell of the next ones of a pipeline in a namespace.

A namespace may hold a million past steps, of which a run asks for few. So of all pipelines together
only the last runs are learned from: they say what steps that are alike take, and how forecasts
miss. Of the pipeline that is planned all its runs are learned from, apart. The planner in the
cluster does the same, so that it promises what was promised before submission.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.model.history import MOST_PIPELINES, PastRun

RUNS_OF_EACH, RUNS_OF_ALL = RECENT, 200
"""The last runs of each pipeline, and of all: what a namespace is known by. Older ones
of a pipeline do not say where its times lie."""


def past_of(
    histories: Sequence[PipelineHistory], pipeline: str, keep_days: int | None = None
) -> Past:
    """What the runs of a namespace tell of the next ones of a pipeline.

    Args:
        histories: of the namespace.
        pipeline: of the next runs.
        keep_days: how long runs count; None = all do.
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
    """The last runs of each pipeline that ran lately, and of all of them; their uids.

    Args:
        ended: when runs ended, by uid; those of each pipeline of a namespace.
    """
    ran = sorted(filter(None, ended), key=lambda runs: max(runs.values()))[-MOST_PIPELINES:]
    of_all = {uid: at for runs in ran for uid, at in runs.items()}
    of_each = (uid for runs in ran for uid in _latest(runs, RUNS_OF_EACH))
    return frozenset((*of_each, *_latest(of_all, RUNS_OF_ALL)))


def _latest(ended: Mapping[str, datetime], most: int) -> list[str]:
    return sorted(ended, key=lambda uid: (ended[uid], uid))[-most:]
