"""PipelineHistories of a cluster: read, and told what not to count any more."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any

from kfp_placement.live.exceptions import (
    ClusterAmbiguousError,
    ClusterConflictError,
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.kinds import HISTORIES, Api, JsonObject, our_objects
from kfp_placement_engine.contract.pipeline_history import (
    HISTORIES_PER_PAGE,
    MAX_FORGOTTEN_STEPS,
    PipelineHistory,
)
from kfp_placement_engine.contract.resources import read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.step_names import StepNames, listed
from kfp_placement_engine.model.times import time_text
from kfp_placement_engine.views.formatting import shown
from kfp_placement_engine.views.past_runs import forgotten_of, key_of, runs_of
from kfp_placement_kube.client import modify

MAX_HISTORIES = 20_000
"""Objects that are listed."""


def list_histories(api: Api, namespace: str, problems: list[str]) -> Iterator[PipelineHistory]:
    """The histories of a namespace ("" = all), each when it is wanted.

    Args:
        api: the cluster.
        namespace: where.
        problems: what cannot be read is added, in words.

    Raises:
        ClusterMissingError: histories are not installed.
        ClusterError: refused, or no answer.
    """
    found = our_objects(api, HISTORIES, namespace=namespace, limit=HISTORIES_PER_PAGE)
    for raw in islice(found, MAX_HISTORIES):
        try:
            history = read_resource(PipelineHistory, raw)
            history.past_runs()
            yield history
        except InputError as error:
            problems.append(f"{error}; it does not count")
    if next(found, None) is not None:
        problems.append(f"only {MAX_HISTORIES:,} PipelineHistories are looked at")


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
        patch = {
            "metadata": {"resourceVersion": raw["metadata"].get("resourceVersion")},
            "spec": _forgetting(raw, steps, now),
        }
        api.patch(HISTORIES, name, namespace, patch)

    try:
        modify(read(), write, read, again_on=(ClusterConflictError,))
    except ClusterForbiddenError as error:
        raise ClusterForbiddenError(
            f"{error}; the ClusterRole kfp-placement-edit-history allows it"
        ) from error


def _forgetting(raw: JsonObject, steps: Sequence[str], now: datetime) -> dict[str, Any]:
    """The fields of a spec that change; later times of others stay."""
    try:
        spec = read_resource(PipelineHistory, raw).spec
    except InputError as error:
        raise ClusterError(f"{error}; correct it with kubectl edit, or delete it") from error
    # Moments are written in whole seconds; what has ended by now must be before this one.
    before = (now + timedelta(microseconds=999_999)).replace(microsecond=0)
    times = {each.step: each.before for each in spec.forget_steps}
    changed: dict[str, Any] = {}
    if steps:
        times |= {step: max(before, times.get(step, before)) for step in steps}
    else:
        since = max(before, spec.forget_before or before)
        changed["forgetBefore"] = time_text(since)
        times = {step: at for step, at in times.items() if at > since}
    if len(times) > MAX_FORGOTTEN_STEPS:
        raise ClusterError(
            f"{len(times)} steps would be forgotten one by one, and at most {MAX_FORGOTTEN_STEPS}"
            " can; forget the whole pipeline, without --step"
        )
    left = [{"step": step, "before": time_text(at)} for step, at in times.items()]
    return {**changed, "forgetSteps": left or None}


def histories_named(
    histories: Sequence[PipelineHistory], wanted: str, where: str
) -> tuple[PipelineHistory, ...]:
    """The histories of the pipeline of that name; several objects may be of one.

    Args:
        histories: all of them, at least one.
        wanted: the pipeline.
        where: they are from, for messages.

    Raises:
        ClusterMissingError: there is none; the message names what comes close.
        ClusterAmbiguousError: several namespaces have one.
    """
    found = tuple(each for each in histories if each.spec.pipeline == wanted)
    namespaces = sorted({key_of(each)[0] for each in found})
    if len(namespaces) > 1:
        raise ClusterAmbiguousError(
            f"{len(namespaces)} namespaces have a history of pipeline {shown(wanted, 120)!r}; name"
            f" one with -n: {listed(namespaces)}"
        )
    if found:
        return found
    names = StepNames(((each.spec.pipeline,) * 2 + ("",) for each in histories), "pipeline")
    raise ClusterMissingError(f"in {where} {names.problem(wanted)}")


def steps_named(histories: Sequence[PipelineHistory], wanted: Sequence[str]) -> tuple[str, ...]:
    """Paths of the steps that are meant.

    Args:
        histories: of one pipeline.
        wanted: names of steps.

    Raises:
        ClusterMissingError: there is no such step, or it is forgotten already; else the message
            names what comes close.
    """
    paths = {each.identity.step: None for run in runs_of(histories) for each in run.steps}
    names, forgotten = StepNames((path, path, "") for path in paths), forgotten_of(histories)
    names_forgotten = StepNames((path, path, "") for path in forgotten)
    found: dict[str, None] = {}
    for each in wanted:
        meant = names.meant(each)
        if not meant:
            problem = names.problem(each)
            for step in names_forgotten.meant(each)[:1]:
                since = time_text(forgotten[step])
                problem = f"step {step!r:.120} is forgotten already: what ended before {since}"
            raise ClusterMissingError(f"{histories[0].spec.pipeline}: {problem}")
        found |= dict.fromkeys(meant)
    return tuple(found)
