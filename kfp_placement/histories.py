"""Past runs as people give them, for plans made on them: a file, or those of a cluster."""

import os
from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING

from kfp_placement.exceptions import MarkValueError
from kfp_placement_engine.model.policy import KEEP_DAYS, HistoryPolicy
from kfp_placement_engine.model.run_graph import Notice, RunGraph
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.views.formatting import counted

# Pydantic and what learns take long to import, and most plans are made without.
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kfp_placement.live.kinds import Api
    from kfp_placement_engine.contract.pipeline_history import PipelineHistory
    from kfp_placement_engine.history import Past
    from kfp_placement_engine.model.cluster import Cluster

LIVE, NONE = "live", "none"
"""In place of a file: the histories of the cluster; nothing, wherever the run goes."""

CONFIDENCE_UNUSED = Notice(
    "confidence-unused",
    "confidence has no effect: it is for ranges that are made of past runs, and this plan rests on"
    " none; name some with history='history.yaml' or history='live'",
)
"""For a plan in Python that is asked for a share, and for no past runs."""

_UNREADABLE_SHOWN, _PIPELINES_SHOWN = 5, 5

_NAMING = "namespace='{}'"
"""How a namespace is named in Python."""

_USUAL = HistoryPolicy(keep_days=KEEP_DAYS)


@dataclass(frozen=True)
class KnownPast:
    """What past runs tell of the next ones.

    Attributes:
        past: that; None = nothing is asked of them.
        notices: what of it could not be read, and does not count.
        runs: how many runs count, by pipeline of the namespace.
        forgotten: since when runs count, by pipeline of which earlier ones are forgotten.
        forgotten_steps: the same of steps of the run's pipeline that have not ended well since, by
            path.
        namespace: where these were; "" = not known. A run that names none goes there.
        is_asked_for: somebody has named them: then a pipeline without any is a surprise.
        naming_others: how another namespace is named whose past runs could be read, with {} for
            its name; "" = none can be.
    """

    past: "Past | None" = None
    notices: tuple[Notice, ...] = ()
    runs: "Mapping[str, int]" = field(default_factory=dict)
    forgotten: "Mapping[str, datetime]" = field(default_factory=dict)
    forgotten_steps: "Mapping[str, datetime]" = field(default_factory=dict)
    namespace: str = ""
    is_asked_for: bool = False
    naming_others: str = ""

    def noted_on(self, run: RunGraph) -> RunGraph:
        """The run with the warnings about its past."""
        notices = list(self.notices)
        if run.name not in self.runs:
            if run.name in self.forgotten:
                notices.append(_forgotten(run.name, self.forgotten[run.name]))
            elif self.is_asked_for:
                notices.append(self._unseen(run.name))
        for task in dict.fromkeys(step.task for step in run.steps):
            since = self.forgotten_steps.get(task)
            if since is not None:
                notices.append(_forgotten_step(task, since))
        return replace(run, notices=(*run.notices, *notices))

    def _unseen(self, pipeline: str) -> Notice:
        if self.runs or not self.naming_others:
            return _unseen(pipeline, sorted(self.runs))
        return Notice(
            "unseen-pipeline",
            f"namespace {self.namespace} has no past runs, of pipeline {pipeline!r:.80} or another;"
            f" if the run goes elsewhere, name its namespace: {self.naming_others.format('NAME')}",
        )

    def text(self, pipeline: str, source: str) -> str:
        """What is known of a pipeline: `past runs: 9 of team-a (history.yaml)`; "" = unasked.

        A pipeline without past runs may still have times, of other pipelines with like steps.

        Args:
            pipeline: its name.
            source: where the runs are from.
        """
        if self.past is None:
            return ""
        own, others = self.runs.get(pipeline, 0), sum(self.runs.values())
        if own == 0 and others > 0:
            where = f" in {self.namespace}" if self.namespace else ""
            return f"past runs: none of this pipeline, {others} of others{where} ({source})"
        of_namespace = f" of {self.namespace}" if self.namespace else ""
        return f"past runs: {own}{of_namespace} ({source})"


def named_history(of: str, value: object) -> str | os.PathLike[str] | None:
    """Where past runs are, as Python code says it; None = it says nothing.

    Args:
        of: the function that it is given to.
        value: a path, `live` or `none`.

    Raises:
        MarkValueError: it is something else.
    """
    if value is None or (isinstance(value, str) and value) or isinstance(value, os.PathLike):
        return value
    raise MarkValueError(f"{of}: history = {value!r:.80}; it must be a path, 'live' or 'none'")


def history_policy(cluster: "Cluster | None") -> HistoryPolicy:
    """What the policy of a cluster says of past runs; what it does not say is as usual."""
    policy = None if cluster is None else cluster.policy
    stated = None if policy is None else policy.history
    return _USUAL if stated is None else replace(stated, keep_days=stated.keep_days or KEEP_DAYS)


def node_speeds(cluster: "Cluster | None") -> "Mapping[str, float]":
    """How fast the nodes of a cluster are said to be: past times are measured against it."""
    return {} if cluster is None else {node.name: node.speed for node in cluster.nodes}


def past_given(
    given: str | os.PathLike[str] | None,
    pipeline: str,
    namespace: str,
    api: "Api | None",
    cluster: "Cluster | None" = None,
    *,
    naming: str = _NAMING,
) -> KnownPast:
    """The past that somebody names.

    Args:
        given: the path of a file, `live`, `none`; None = the cluster's, where the run is planned on
            a live one that has them.
        pipeline: of the run.
        namespace: of the run; "" = nobody says.
        api: the live cluster, if the run is planned on one.
        cluster: where the run goes: its policy says how long runs count and who shares what, its
            nodes how fast they are.
        naming: how whoever reads messages names a namespace, with {} for its name.

    Raises:
        ClusterError: `live`, and the cluster refuses, gives no answer, or has no histories.
        EngineError: the file is not there, cannot be read, or is of another namespace.
    """
    if given == NONE or (given is None and api is None):
        return KnownPast()
    if given is None or given == LIVE:
        if api is None:
            api = _connect()
        is_asked_for = given is not None
        return past_in_cluster(
            api, pipeline, namespace, cluster, is_asked_for=is_asked_for, naming=naming
        )
    histories = _histories_of_file(os.fspath(given))
    return past_in(histories, pipeline, namespace, cluster, naming=naming)


def _histories_of_file(path: str) -> "tuple[PipelineHistory, ...]":
    from kfp_placement_engine.exceptions import InputNotFoundError
    from kfp_placement_engine.readers.history_file import read_histories_file

    try:
        return read_histories_file(path)
    except InputNotFoundError as error:
        if (word := path.lower()) in (LIVE, NONE):
            raise InputNotFoundError(f"{error}; did you mean {word}?") from error
        raise


def _connect() -> "Api":
    """The cluster of which somebody wants the histories, and nothing else."""
    from kfp_placement.live.connection import LiveCluster
    from kfp_placement.live.exceptions import ClusterMissingError

    try:
        return LiveCluster.connect()
    except ClusterMissingError as error:
        raise ClusterMissingError(
            f"history='live' asks a cluster: {error}; or name a file of past runs, or 'none'"
        ) from error


def past_in(
    histories: "Iterable[PipelineHistory]",
    pipeline: str,
    namespace: str,
    cluster: "Cluster | None" = None,
    *,
    naming: str = _NAMING,
) -> KnownPast:
    """What these histories tell of the next runs of a pipeline in a namespace.

    Args:
        histories: all that are known.
        pipeline: of the run.
        namespace: of the run; "" = where they are from.
        cluster: as for `past_given`.
        naming: likewise.

    Raises:
        InputError: they are of several namespaces, or of others that share nothing with it.
    """
    from kfp_placement_engine.planning.stored_past import past_of

    known = tuple(histories)
    notices = unreadable_notices(known)
    policy = history_policy(cluster)
    past = past_of(known, pipeline, namespace, policy, node_speeds(cluster), naming=naming)
    # Names of pipelines of another namespace are not shown, whatever it shares.
    own = [each for each in known if namespace in ("", each.metadata.namespace or namespace)]
    runs, forgotten = Counter[str](), dict[str, datetime]()
    for each in own:
        name, before = each.spec.pipeline, each.spec.forget_before
        runs[name] += len(each.runs_that_count(policy.keep_days))
        if before is not None:
            forgotten[name] = max(before, forgotten.get(name, before))
    forgotten_steps = _forgotten_steps(own, pipeline, past)
    where = namespace or next((each.metadata.namespace or "" for each in own), "")
    # Without those of no runs.
    return KnownPast(past, notices, +runs, forgotten, forgotten_steps, where, is_asked_for=True)


def _forgotten_steps(
    histories: "Iterable[PipelineHistory]", pipeline: str, past: "Past"
) -> "Mapping[str, datetime]":
    """Steps of a pipeline of which no time counts, by path, and since when they would."""
    since: dict[str, datetime] = {}
    for each in histories:
        if each.spec.pipeline == pipeline:
            for step in each.spec.forget_steps:
                since[step.step] = max(step.before, since.get(step.step, step.before))
    return {step: at for step, at in since.items() if past.steps.runs(pipeline, step) == 0}


def unreadable_notices(histories: "Iterable[PipelineHistory]") -> tuple[Notice, ...]:
    """Which pipelines have rows that do not count, and how many, of the first few."""
    from kfp_placement_engine.contract.pipeline_history import unreadable_rows

    bad: dict[tuple[str, str], list[str]] = defaultdict(list)
    for each in histories:
        if rows := unreadable_rows(each):
            bad[each.metadata.namespace or "", each.spec.pipeline] += rows
    found = list(bad.items())[:_UNREADABLE_SHOWN]
    return tuple(_bad_rows(*pipeline, rows) for pipeline, rows in found)


def past_in_cluster(
    api: "Api",
    pipeline: str,
    namespace: str,
    cluster: "Cluster | None" = None,
    *,
    is_asked_for: bool,
    naming: str = _NAMING,
) -> KnownPast:
    """The same of the histories of a cluster.

    Args:
        api: the cluster.
        pipeline: of the run.
        namespace: of the histories; "" = the one of the context.
        cluster: as for `past_given`.
        is_asked_for: that there are none that can be read is an error, else no past.
        naming: as for `past_given`.

    Raises:
        ClusterError: no answer; or it refuses or has none, and that is an error.
    """
    from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
    from kfp_placement.live.histories import list_histories

    namespace, problems = namespace or api.namespace, list[str]()
    try:
        histories = list(list_histories(api, namespace, problems))
    except (ClusterForbiddenError, ClusterMissingError) as error:
        if is_asked_for:
            raise
        # Histories are a feature of its own: a cluster without is as it always was.
        is_there = isinstance(error, ClusterForbiddenError)
        return KnownPast(notices=(_not_allowed(error),) if is_there else ())
    refused: list[Notice] = []
    for other in history_policy(cluster).sharing_with(namespace):
        try:
            histories += list_histories(api, other, problems)
        except ClusterForbiddenError as error:
            refused.append(_not_allowed_of(other, error))
    known = past_in(histories, pipeline, namespace, cluster)
    bad = tuple(Notice("bad-history", each) for each in problems[:_UNREADABLE_SHOWN])
    notices = (*refused[:_UNREADABLE_SHOWN], *bad, *known.notices)
    return replace(known, notices=notices, is_asked_for=is_asked_for, naming_others=naming)


def _not_allowed(error: Exception) -> Notice:
    return Notice(
        "not-allowed",
        f"may not read pipelinehistories: no run time is taken from past runs ({error})",
    )


def _not_allowed_of(namespace: str, error: Exception) -> Notice:
    return Notice(
        "not-allowed",
        f"may not read pipelinehistories of namespace {namespace}, which shares what it has seen:"
        f" the plan knows less of new steps than the planner in the cluster ({error})",
    )


def _unseen(pipeline: str, others: list[str]) -> Notice:
    shown = ", ".join(f"{each:.80}" for each in others[:_PIPELINES_SHOWN])
    left = len(others) - _PIPELINES_SHOWN
    known = f"{shown} and {left:,} more" if left > 0 else shown
    what = (
        f", but of {known}; a pipeline must have the same name as in its past runs"
        if others
        else ", nor of any other pipeline"
    )
    return Notice("unseen-pipeline", f"the history has no run of pipeline {pipeline!r:.80}{what}")


def _forgotten(pipeline: str, since: datetime) -> Notice:
    return Notice(
        "unseen-pipeline",
        f"the runs of pipeline {pipeline!r:.80} that ended before {time_text(since)} are forgotten,"
        " and none has ended since",
    )


def _forgotten_step(step: str, since: datetime) -> Notice:
    return Notice(
        "forgotten-step",
        f"what it took before {time_text(since)} is forgotten, and it has not ended well since",
        step,
    )


def _bad_rows(namespace: str, pipeline: str, rows: "Sequence[str]") -> Notice:
    whose = f"{pipeline!r:.80} of namespace {namespace:.80}" if namespace else f"{pipeline!r:.80}"
    return Notice(
        "bad-history",
        f"the history of pipeline {whose} has {counted(len(rows), 'row')} that cannot be read"
        f" or cannot be true, the first is {rows[0]}; such rows do not count",
    )
