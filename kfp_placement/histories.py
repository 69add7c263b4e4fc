"""Past runs that a plan rests on: those in a file or in a cluster, and warnings about them."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kfp_placement._package import Package
from kfp_placement_engine.model.policy import KEEP_DAYS, HistoryPolicy
from kfp_placement_engine.model.progress import Progress
from kfp_placement_engine.model.run_graph import Notice, RunGraph
from kfp_placement_engine.model.times import time_text

# Pydantic and what learns take long to import, and most plans are made without.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from kfp_placement.live.kinds import Api
    from kfp_placement_engine.contract.pipeline_history import PipelineHistory
    from kfp_placement_engine.history import Past
    from kfp_placement_engine.model.cluster import Cluster

LIVE, NONE = "live", "none"
"""In place of a file: the histories of the cluster; nothing, wherever the run goes."""

_UNREADABLE_SHOWN, _PIPELINES_SHOWN = 5, 5


@dataclass(frozen=True)
class HistorySource:
    """Where past runs come from, in the words of whoever asks.

    Attributes:
        given: a file as read, or its path; `live`; `none`; None = the histories of the cluster,
            where there is a live one that has them.
        api: the live cluster; None = there is none, and `given` is not `live`.
        naming: how whoever asks names a namespace, with {} for its name.
    """

    given: "str | os.PathLike[str] | Package | None" = None
    api: "Api | None" = None
    naming: str = "namespace='{}'"

    @property
    def text(self) -> str:
        """What the source is called."""
        return self.given.name if isinstance(self.given, Package) else str(self.given or LIVE)


@dataclass(frozen=True)
class KnownPast:
    """What past runs tell of the next run of a pipeline.

    Attributes:
        past: that; None = nothing is asked of them.
        notices: what of it could not be read, and what somebody may have expected of it.
        namespace: where the runs were; "" = not known.
        text: how many count: `past runs: 9 of team-a (history.yaml)`; "" = nothing is asked.
        histories: the objects that hold the runs.
    """

    past: "Past | None" = None
    notices: tuple[Notice, ...] = ()
    namespace: str = ""
    text: str = ""
    histories: "tuple[PipelineHistory, ...]" = ()


THE_CLUSTER = HistorySource()
"""Past runs of the live cluster; none where a run is planned elsewhere."""

NO_PAST = KnownPast()
"""Nothing is asked of past runs."""


def read_past(
    source: HistorySource,
    run: RunGraph,
    namespace: str,
    cluster: "Cluster",
    progress: Progress,
) -> KnownPast:
    """Read the past runs of a source.

    Args:
        source: where they are.
        run: the next one.
        namespace: where it goes; "" = nobody says.
        cluster: likewise; its policy says how long runs count.
        progress: told what is read.

    Raises:
        ClusterError: `live`, and the cluster refuses, gives no answer, or has no histories.
        EngineError: the file is not there or cannot be read, or the histories are of several
            namespaces or of others.
    """
    if source.given == NONE or (source.given is None and source.api is None):
        return NO_PAST
    progress(0.0, "reading past runs")
    problems = list[str]()
    if source.given not in (None, LIVE):
        histories = file_histories(source.given)
    else:
        from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
        from kfp_placement.live.histories import list_histories

        assert source.api is not None  # as its attributes say
        namespace = namespace or source.api.namespace
        try:
            histories = tuple(list_histories(source.api, namespace, problems))
        except (ClusterForbiddenError, ClusterMissingError) as error:
            if source.given is not None:
                raise
            # Histories are a feature of its own: a cluster without is as it always was.
            if isinstance(error, ClusterMissingError):
                return NO_PAST
            text = f"may not read pipelinehistories: no run time is taken from past runs ({error})"
            return KnownPast(notices=(Notice("not-allowed", text),))
    from kfp_placement_engine.planning.stored_past import past_of

    policy = (cluster.policy and cluster.policy.history) or HistoryPolicy()
    keep_days = policy.keep_days or KEEP_DAYS
    policy = replace(policy, keep_days=keep_days)
    past = past_of(histories, run.name, namespace, policy, naming=source.naming)
    own = [each for each in histories if namespace in ("", each.metadata.namespace or namespace)]
    runs = Counter[str]()
    for each in own:
        runs[each.spec.pipeline] += len(each.runs_that_count(keep_days))
    counts = {pipeline: count for pipeline, count in runs.items() if count}
    where = namespace or next((each.metadata.namespace or "" for each in own), "")
    notices = (
        *(Notice("bad-history", each) for each in problems[:_UNREADABLE_SHOWN]),
        *_surprises(own, counts, source, run.name, where),
        *_forgotten_steps(own, run, past),
    )
    text = _text(counts, run.name, where, source)
    return KnownPast(past, notices, where, text, tuple(own))


def file_histories(given: "str | os.PathLike[str] | Package") -> "tuple[PipelineHistory, ...]":
    """Read a file of past runs.

    Raises:
        EngineError: it is not there or cannot be read.
    """
    from kfp_placement_engine.exceptions import InputNotFoundError
    from kfp_placement_engine.readers.history_file import read_histories, read_histories_file

    if isinstance(given, Package):
        return read_histories(given.data, name=given.name)
    path = os.fspath(given)
    try:
        return read_histories_file(path)
    except InputNotFoundError as error:
        if (word := path.lower()) in (LIVE, NONE):
            raise InputNotFoundError(f"{error}; did you mean {word}?") from error
        raise


def _text(counts: "Mapping[str, int]", pipeline: str, namespace: str, source: HistorySource) -> str:
    """How many runs count; a pipeline without any may still have times, of others' like steps."""
    own, others = counts.get(pipeline, 0), sum(counts.values())
    if own == 0 and others > 0:
        where = f" in {namespace}" if namespace else ""
        return f"past runs: none of this pipeline, {others} of others{where} ({source.text})"
    of_namespace = f" of {namespace}" if namespace else ""
    return f"past runs: {own}{of_namespace} ({source.text})"


def _surprises(
    histories: "Iterable[PipelineHistory]",
    counts: "Mapping[str, int]",
    source: HistorySource,
    pipeline: str,
    namespace: str,
) -> Iterator[Notice]:
    """Why there is no past run of a pipeline, where somebody has named some or forgotten them."""
    if pipeline in counts:
        return
    forgotten = [
        each.spec.forget_before
        for each in histories
        if each.spec.pipeline == pipeline and each.spec.forget_before is not None
    ]
    named, code = f"pipeline {pipeline!r:.80}", "unseen-pipeline"
    if forgotten:
        yield Notice(
            code,
            f"the runs of {named} that ended before {time_text(max(forgotten))} are forgotten,"
            " and none has ended since",
        )
    elif source.given == LIVE and not counts:
        yield Notice(
            code,
            f"namespace {namespace} has no past runs, of {named} or another; if the run goes"
            f" elsewhere, name its namespace: {source.naming.format('NAME')}",
        )
    elif source.given is not None:
        shown = ", ".join(f"{each:.80}" for each in sorted(counts)[:_PIPELINES_SHOWN])
        left = len(counts) - _PIPELINES_SHOWN
        known = f"{shown} and {left:,} more" if left > 0 else shown
        others = f", but of {known}; a pipeline must have the same name as in its past runs"
        what = others if counts else ", nor of any other pipeline"
        yield Notice(code, f"the history has no run of {named}{what}")


def _forgotten_steps(
    histories: "Iterable[PipelineHistory]", run: RunGraph, past: "Past"
) -> Iterator[Notice]:
    """Steps of the run of which no time counts, and since when they would."""
    since: dict[str, datetime] = {}
    known = frozenset(past.steps.steps_of(run.name))
    for each in histories:
        if each.spec.pipeline == run.name:
            for step in each.spec.forget_steps:
                since[step.step] = max(step.before, since.get(step.step, step.before))
    for task in dict.fromkeys(step.task for step in run.steps):
        if task in since and task not in known:
            yield Notice(
                "forgotten-step",
                f"what it took before {time_text(since[task])} is forgotten, and it has not ended"
                " well since",
                task,
            )
