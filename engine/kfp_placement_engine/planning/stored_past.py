"""What the past runs that histories hold tell of the next ones of a pipeline in a namespace.

A namespace may hold a million past steps, of which a run asks for few. So of all pipelines together
only the last runs are learned from: they say what steps that are alike take, and how forecasts
miss. Of the pipeline that is planned all its runs are learned from, apart. The planner in the
cluster does the same, so that it promises what was promised before submission.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from kfp_placement_engine.contract.pipeline_history import PipelineHistory
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.history import MemoryHistory, Past
from kfp_placement_engine.history.series import RECENT
from kfp_placement_engine.model.history import MOST_PIPELINES
from kfp_placement_engine.model.policy import HistoryPolicy
from kfp_placement_engine.model.step_names import listed

RUNS_OF_EACH, RUNS_OF_ALL = RECENT, 200
"""The last runs of each pipeline, and of all: what a namespace is known by. Older ones
of a pipeline do not say where its times lie."""

_SHOWN = 5


def past_of(
    histories: Iterable[PipelineHistory],
    pipeline: str,
    namespace: str = "",
    policy: HistoryPolicy | None = None,
    *,
    naming: str = "{}",
) -> Past:
    """What these runs tell of the next ones of a pipeline in a namespace.

    Args:
        histories: of one namespace; if one is named, those of others do not count.
        pipeline: of the next runs.
        namespace: where the next runs go; "" = where these were.
        policy: how long runs count; None = all do.
        naming: how whoever reads messages names a namespace, with {} for its name.

    Raises:
        InputError: they are of several namespaces, or all of others.
    """
    known, keep_days = list(histories), None if policy is None else policy.keep_days
    found = sorted({each.metadata.namespace or "" for each in known} - {""})
    shown = [f"{name:.80}" for name in found]
    if namespace and found and namespace not in found:
        are_more = "s" if len(found) > 1 else ""
        raise InputError(
            f"the history is of namespace{are_more} {listed(shown, _SHOWN)} and the run goes to"
            f" {namespace!r:.80}; export the history of {namespace!r:.80}, or give"
            f" {naming.format(shown[0])} if the run goes there"
        )
    if not namespace and len(found) > 1:
        raise InputError(
            f"the history is of {len(found)} namespaces ({listed(shown, _SHOWN)}); name the one of"
            f" the run, such as {naming.format(shown[0])}"
        )
    where = namespace or "".join(found)
    own = [each for each in known if (each.metadata.namespace or "") in ("", where)]
    last = last_runs((each.spec.pipeline, each.ended) for each in own)
    of_namespace = Past(run for each in own for run in each.only(last).past_runs(keep_days))
    of_pipeline = (each for each in own if each.spec.pipeline == pipeline)
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
