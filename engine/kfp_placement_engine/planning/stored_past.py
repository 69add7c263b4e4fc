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
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.model.history import MOST_PIPELINES
from kfp_placement_engine.model.step_names import listed

RUNS_OF_EACH, RUNS_OF_ALL = RECENT, 200
"""The last runs of each pipeline, and of all: what a namespace is known by. Older ones
of a pipeline do not say where its times lie."""

_SHOWN = 5


def in_namespace(
    histories: Sequence[PipelineHistory], namespace: str
) -> tuple[str, list[PipelineHistory]]:
    """The namespace of the next run, and the histories that count for it.

    Args:
        histories: of any namespaces; those that name none count for all.
        namespace: where the next run goes; "" = where these runs were.

    Raises:
        InputError: they are of several namespaces, or all of others.
    """
    found = sorted({each.metadata.namespace or "" for each in histories} - {""})
    where = namespace or (found[0] if len(found) == 1 else "")
    if found and where not in found:
        goes = (
            f"the run goes to {namespace!r:.80}" if namespace else "nobody says where the run goes"
        )
        raise InputError(
            f"the history is of namespace {listed(found, _SHOWN)}, and {goes}; name the run's"
            " namespace (-n, in Python namespace=), or export the history of it"
        )
    return where, [each for each in histories if (each.metadata.namespace or "") in ("", where)]


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
