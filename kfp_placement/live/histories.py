"""PipelineHistories of a cluster: read, and told what not to count any more."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice

from kfp_placement.live.exceptions import (
    ClusterAmbiguousError,
    ClusterConflictError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.kinds import HISTORIES, Api, JsonObject, our_objects
from kfp_placement_engine.contract.pipeline_history import HISTORIES_PER_PAGE, PipelineHistory
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.step_names import StepNames, listed
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.views.formatting import shown
from kfp_placement_engine.views.past_runs import forgotten_of, key_of, runs_of
from kfp_placement_kube.client import modify

MAX_HISTORIES = 20_000
"""Objects that are listed."""


def list_histories(api: Api, namespace: str, problems: list[str]) -> list[PipelineHistory]:
    """The histories of a namespace ("" = all).

    Args:
        api: the cluster.
        namespace: where.
        problems: what cannot be read is added, in words.

    Raises:
        ClusterMissingError: histories are not installed.
        ClusterError: refused, or no answer.
    """
    found = []
    listing = our_objects(api, HISTORIES, namespace=namespace, limit=HISTORIES_PER_PAGE)
    for raw in islice(listing, MAX_HISTORIES):
        try:
            found.append(read_resource(PipelineHistory, raw))
        except InputError as error:
            problems.append(f"{error}; it does not count")
    if next(listing, None) is not None:
        problems.append(f"only {MAX_HISTORIES:,} PipelineHistories are looked at")
    return found


def forget(api: Api, history: PipelineHistory, steps: Sequence[str], now: datetime) -> None:
    """Say in a history that what ended before now does not count.

    Args:
        api: the cluster.
        history: of a pipeline.
        steps: paths of the only steps that are meant; none = all, and whole runs.
        now: the time.

    Raises:
        ClusterMissingError: the history is gone.
        ClusterError: too many steps, refused, or no answer.
    """
    name, namespace = history.metadata.name or "", history.metadata.namespace or ""
    read = partial(api.get, HISTORIES, name, namespace)

    def write(raw: JsonObject | None) -> None:
        if raw is None:
            raise ClusterMissingError(f"PipelineHistory {shown(name, 253)} is gone")
        spec = _forgetting(read_resource(PipelineHistory, raw), steps, now)
        version = {"resourceVersion": raw["metadata"].get("resourceVersion")}
        api.patch(HISTORIES, name, namespace, {"metadata": version, "spec": spec})

    try:
        modify(read(), write, read, again_on=(ClusterConflictError,))
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(
            f"{error}; the ClusterRole kfp-placement-edit-history allows it"
        ) from error


def _forgetting(history: PipelineHistory, steps: Sequence[str], now: datetime) -> JsonObject:
    """The fields of a spec that change; later times of others stay."""
    # Moments are written in whole seconds; what has ended by now must be before this one.
    before = (now + timedelta(microseconds=999_999)).replace(microsecond=0)
    times = forgotten_of(history)
    changed: JsonObject = {}
    if steps:
        times |= {step: max(before, times.get(step, before)) for step in steps}
    else:
        since = max(before, history.spec.forget_before or before)
        changed["forgetBefore"] = time_text(since)
        times = {step: at for step, at in times.items() if at > since}
    left = [{"step": step, "before": time_text(at)} for step, at in times.items()]
    return {**changed, "forgetSteps": left or None}


def histories_named(
    histories: Sequence[PipelineHistory], wanted: str | None, where: str
) -> list[PipelineHistory]:
    """The history of the pipeline of that name, or all of them; at least one.

    Args:
        histories: one for each pipeline of a namespace.
        wanted: the pipeline; None = all.
        where: where was looked, for messages.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
        ClusterAmbiguousError: several namespaces have one.
    """
    found = [each for each in histories if wanted in (None, each.spec.pipeline)]
    if wanted is not None and len(found) > 1:
        namespaces = sorted(key_of(each)[0] for each in found)
        raise ClusterAmbiguousError(
            f"{len(found)} namespaces have a history of pipeline {shown(wanted, 120)!r}; name one"
            f" with -n: {listed(namespaces)}"
        )
    if not found:
        names = StepNames(((each.spec.pipeline,) * 2 + ("",) for each in histories), "pipeline")
        problem = names.problem(wanted) if histories else "no pipeline has a history"
        raise ClusterMissingError(f"{problem} ({where})")
    return found


def steps_named(history: PipelineHistory, wanted: Sequence[str]) -> tuple[str, ...]:
    """Paths of the steps that are meant, forgotten ones included.

    Args:
        history: of their pipeline.
        wanted: names of steps.

    Raises:
        ClusterMissingError: there is no such step; the message names what comes close.
    """
    paths = {each.identity.step: None for run in runs_of(history) for each in run.steps}
    names = StepNames((path, path, "") for path in [*paths, *forgotten_of(history)])
    found: dict[str, None] = {}
    for each in wanted:
        meant = names.meant(each)
        if not meant:
            raise ClusterMissingError(f"{history.spec.pipeline}: {names.problem(each)}")
        found |= dict.fromkeys(meant)
    return tuple(found)
