"""Past runs that a plan rests on: those in a file or in a cluster, and warnings about them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kfp_placement._input_file import LIVE, InputFile, read_input
from kfp_placement.live.exceptions import ClusterForbiddenError, ClusterMissingError
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.policy import KEEP_DAYS
from kfp_placement_engine.model.step_names import listed
from kfp_placement_engine.plans.progress import Progress
from kfp_placement_engine.units.times import time_text

# Pydantic and what learns take long to import, and most plans are made without.
if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from datetime import datetime

    from kfp_placement.live.connection import ClusterApi
    from kfp_placement_engine.contract.history.pipeline_history import PipelineHistory
    from kfp_placement_engine.history import Past
    from kfp_placement_engine.model.cluster import Cluster

NONE = "none"
"""Name in place of a file: no histories."""

_SHOWN = 5
"""Problems, or pipelines, that are named."""


@dataclass(frozen=True)
class HistorySource:
    """Source of past runs; without arguments there is none.

    Attributes:
        given: a file as read, or its path; `live`; `none`; None = the histories of the cluster,
            where there is a live one that has them.
        api: the live cluster; None = there is none, and `given` is not `live`.
    """

    given: "str | os.PathLike[str] | InputFile | None" = None
    api: "ClusterApi | None" = None

    @property
    def cluster(self) -> "ClusterApi | None":
        """The cluster whose histories are meant; None = those of a file, or none."""
        return self.api if self.given in (None, LIVE) else None


@dataclass(frozen=True)
class LoadedPast:
    """Knowledge of past runs for the next run of a pipeline.

    Attributes:
        past: forecasts by past runs; None = past runs are not used.
        notices: warnings on what could not be read, or may have been expected.
        namespace: namespace of the runs; "" = not known.
        text: number of runs that count: `past runs: 9 of team-a (history.yaml)`, or "".
        histories: the objects that hold the runs.
    """

    past: "Past | None" = None
    notices: tuple[Notice, ...] = ()
    namespace: str = ""
    text: str = ""
    histories: "Sequence[PipelineHistory]" = ()


NO_PAST = LoadedPast()
"""Absence of past runs."""


def read_histories(
    source: HistorySource, namespace: str
) -> "tuple[list[PipelineHistory], list[str]]":
    """Read the histories of a namespace, from a file or a cluster; one for each pipeline.

    Args:
        source: source of the histories.
        namespace: namespace of the histories; "" = all.

    Returns:
        The histories; and in words what does not count: of a cluster those that cannot be read, of
        a file other namespaces where it has nothing else.

    Raises:
        ClusterError: the cluster refuses, gives no answer, or has no histories.
        EngineError: the file is not there or cannot be read.
    """
    if source.cluster is not None:
        from kfp_placement.live.histories import list_histories

        return list_histories(source.cluster, namespace)
    from kfp_placement_engine.readers import history_file

    given = source.given
    if not isinstance(given, InputFile):
        given = read_input(str(given), history_file.MAX_FILE_BYTES)
    histories = history_file.read_histories(given.data, name=given.name)
    own = [each for each in histories if namespace in ("", each.metadata.namespace or namespace)]
    if own or not histories:
        return own, []
    named = listed(sorted({each.metadata.namespace or "" for each in histories}), _SHOWN)
    return [], [f"{given.name} has no run of namespace {namespace}, but of {named}"]


def read_past(
    source: HistorySource, pipeline: str, namespace: str, cluster: "Cluster", progress: Progress
) -> LoadedPast:
    """Read what the past runs of a source tell of the next run of a pipeline.

    Args:
        source: source of the histories.
        pipeline: name of the pipeline.
        namespace: namespace of the run; "" = not known.
        cluster: cluster of the run; its policy says how long runs count.
        progress: callback for the progress of reading.

    Raises:
        ClusterError: `live`, and the cluster refuses, gives no answer, or has no histories.
        EngineError: the file is not there or cannot be read, or is of several namespaces.
    """
    is_asked = source.given is not None
    if source.given == NONE or not (is_asked or source.api):
        return NO_PAST
    progress(0.0, "reading past runs")
    if source.cluster is not None:
        namespace = namespace or source.cluster.namespace
    try:
        histories, problems = read_histories(source, namespace)
    except (ClusterForbiddenError, ClusterMissingError) as error:
        if is_asked:
            raise
        # Histories are a feature of its own: a cluster without is as it always was.
        if isinstance(error, ClusterMissingError):
            return NO_PAST
        text = f"may not read pipelinehistories: no run time is taken from past runs ({error})"
        return LoadedPast(notices=(Notice("not-allowed", text),))
    named = sorted({each.metadata.namespace or "" for each in histories} - {""})
    if not namespace and len(named) > 1:
        raise InputError(
            f"the history is of {len(named)} namespaces ({listed(named, _SHOWN)}); name that of the"
            " run (-n, in Python namespace=)"
        )
    namespace = namespace or "".join(named)
    policy = cluster.policy and cluster.policy.history
    keep_days = (policy and policy.keep_days) or KEEP_DAYS
    pipelines = {each.spec.pipeline: each for each in histories}
    history = pipelines.pop(pipeline, None)
    runs, forgotten = 0, None
    if history is not None:
        runs, forgotten = len(history.runs_that_count(keep_days)), history.spec.forget_before
    notices = [Notice("bad-history", each) for each in problems[:_SHOWN]]
    if not runs and (is_asked or forgotten):
        others = sorted(name for name, each in pipelines.items() if each.runs_that_count(keep_days))
        text = _why_none_counts(pipeline, namespace, forgotten, others)
        notices.append(Notice("unseen-pipeline", text))
    from kfp_placement_engine.planning.past_runs.stored_past import past_of

    given = source.given
    name = given.name if isinstance(given, InputFile) else given or LIVE
    of_namespace = f" of {namespace}" if namespace else ""
    text = f"past runs: {runs}{of_namespace} ({name})"
    past = past_of(histories, pipeline, keep_days)
    return LoadedPast(past, tuple(notices), namespace, text, histories)


def _why_none_counts(
    pipeline: str, namespace: str, forgotten: "datetime | None", others: "Sequence[str]"
) -> str:
    """Say why no past run of a pipeline counts, though somebody has named or forgotten some.

    Args:
        pipeline: name of the pipeline.
        namespace: namespace that was searched; "" = not known.
        forgotten: time before which ended runs do not count; None = all count.
        others: the pipelines of which runs count there.
    """
    where = f" in namespace {namespace:.80}" if namespace else ""
    text = f"no past run of pipeline {pipeline!r:.80} counts{where}"
    if forgotten:
        return f"{text}: what ended before {time_text(forgotten)} is forgotten"
    if others:
        names = listed(others, _SHOWN)
        return f"{text}, but of {names}; a pipeline must have the same name as in its past runs"
    return f"{text}, nor of another"
