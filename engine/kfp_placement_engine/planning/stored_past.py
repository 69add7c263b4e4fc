"""What the past runs that histories hold tell of the next ones of a pipeline in a namespace.

A namespace may hold a million past steps, of which a run asks for few. So of all pipelines together
only the last runs are learned from: they say what steps that are alike take, and how forecasts
miss. Of the pipeline that is planned all its runs are learned from, apart. The planner in the
cluster does the same, so that it promises what was promised before submission.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.model.history import MOST_PIPELINES

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
    last = last_runs((each.spec.pipeline, each.ended) for each in histories)
    of_namespace = Past(run for each in histories for run in each.only(last).past_runs(keep_days))
    of_pipeline = (each for each in histories if each.spec.pipeline == pipeline)
    runs = [run for each in of_pipeline for run in each.past_runs(keep_days)]
    return Past(runs, of_namespace, MemoryHistory())


def last_runs(ended: Iterable[tuple[str, Mapping[str, datetime]]]) -> frozenset[str]:
    """The last runs of each pipeline that ran lately, and of all of them; their uids.

    Args:
        ended: pipelines of a namespace, each with the times at which runs of it ended, by uid; one
            may come several times.
    """
    of_each: defaultdict[str, dict[str, datetime]] = defaultdict(dict)
    for pipeline, runs in ended:
        of_each[pipeline] |= runs
    ran = sorted(filter(None, of_each.values()), key=lambda runs: max(runs.values()))
    counted = ran[-MOST_PIPELINES:]
    of_all = {uid: at for runs in counted for uid, at in runs.items()}
    last = [uid for runs in counted for uid in _latest(runs, RUNS_OF_EACH)]
    return frozenset((*last, *_latest(of_all, RUNS_OF_ALL)))


def _latest(ended: Mapping[str, datetime], most: int) -> list[str]:
    return sorted(ended, key=lambda uid: (ended[uid], uid))[-most:]
