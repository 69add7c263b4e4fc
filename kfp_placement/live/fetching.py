"""Asks the cluster for runs: which one is meant, its plan, its pods, the events about them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement.live.kinds import (
    EVENTS,
    NAMESPACES,
    NOT_INSTALLED,
    PLACEMENT_METADATA,
    PLACEMENTS,
    PODS,
    WORKFLOW_METADATA,
    WORKFLOWS,
    Api,
    JsonObject,
    Kind,
)
from kfp_placement.live.pods import pods_by_step
from kfp_placement.live.runs import (
    RunView,
    run_view,
    step_names,
)
from kfp_placement.report.visible import shown
from kfp_placement_engine.contract.keys import PLACED_ELSEWHERE, RUN_ID_LABEL
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.argo.keys import WORKFLOW_LABEL

MAX_RUNS = 5_000
"""Runs that are listed."""

MAX_PODS = 50_000
"""Pods of a run that are looked at: one for each step and its retries."""

_PLACEMENTS_PAGE = 50
"""Each has up to 1 MB."""

NAMES_PAGE = 500
"""Where objects are asked for by their metadata alone."""

_OBJECT_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_NAMESPACE = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")


@dataclass(frozen=True)
class NamedRun:
    """A run that a name may mean.

    Attributes:
        namespace: where its Workflow is.
        name: the Workflow's.
        run_name: KFP's, where it is known.
        raw: its PipelinePlacement; None = it has none.
    """

    namespace: str
    name: str
    run_name: str = ""
    raw: JsonObject | None = None

    @property
    def key(self) -> RunKey:
        """What tells it apart from all others."""
        return RunKey(self.namespace, self.name)


def list_runs(api: Api, namespace: str) -> tuple[tuple[RunView, ...], bool]:
    """The runs of a namespace ("" = all), latest first; and whether there are more.

    Raises:
        ClusterError: refused, no answer, or the controller is not installed.
    """
    runs: list[RunView] = []
    for raw in _placements(api, namespace):
        if len(runs) == MAX_RUNS:
            return _latest_first(runs), True
        # Of a run that cannot be listed in full the rows are not needed, but those that wait are.
        runs.append(run_view(raw))
    return _latest_first(runs), False


def find_runs(api: Api, namespace: str, wanted: str) -> list[NamedRun]:
    """The runs that a name may mean: Workflow's name, else KFP's run id, else KFP's run name.

    `NAMESPACE/NAME` is one of these names in that namespace, wherever one should look.

    Plans have all of them. Workflows are asked where none does: there may be a run without a plan.

    Args:
        api: the cluster.
        namespace: where to look; "" = everywhere.
        wanted: the name.

    Raises:
        ClusterError: refused, no answer, or the controller is not installed.
    """
    refusal: ClusterError | None = None
    runs: list[NamedRun] = []
    try:
        runs = list(_in_its_namespace(api, wanted))
    except (ClusterForbiddenError, ClusterMissingError) as error:
        # It may be KFP's name of a run: these may hold anything.
        refusal = error
    if runs:
        return runs
    if _OBJECT_NAME.fullmatch(wanted):
        runs = _named_runs(_placements(api, namespace, field_selector=f"metadata.name={wanted}"))
    if not runs and _LABEL_VALUE.fullmatch(wanted):
        runs = _named_runs(_placements(api, namespace, label_selector=f"{RUN_ID_LABEL}={wanted}"))
    if runs:
        return runs
    named = _by_metadata(api, namespace, wanted)
    if not named and refusal is not None:
        raise refusal
    return [replace(each, raw=_placement_of(api, each)) for each in named]


def _in_its_namespace(api: Api, wanted: str) -> Iterator[NamedRun]:
    """The run that `list -A` and messages call NAMESPACE/NAME, or KFP so in that namespace."""
    namespace, name = in_namespace(wanted)
    if not namespace:
        return
    if _OBJECT_NAME.fullmatch(name):
        run = NamedRun(namespace, name)
        raw = _placement_of(api, run)
        if raw is not None:
            yield from _named_runs([raw])
            return
        if object_if_allowed(api, WORKFLOWS, name, namespace) is not None:
            yield run
            return
    for each in _by_metadata(api, namespace, name):
        yield replace(each, raw=_placement_of(api, each))


def in_namespace(wanted: str) -> tuple[str, str]:
    """Namespace and name of `NAMESPACE/NAME`; "" and the whole where it cannot be that."""
    namespace, slash, name = wanted.partition("/")
    return (namespace, name) if slash and name and _NAMESPACE.fullmatch(namespace) else ("", wanted)


def _by_metadata(api: Api, namespace: str, wanted: str) -> list[NamedRun]:
    """Runs by whatever name, first those with a plan; their plans are not read."""
    named = list(_plans_named(api, namespace, wanted))
    return named or list(_workflows_named(api, namespace, wanted))


def full_run(api: Api, named_run: NamedRun) -> tuple[RunView, tuple[str, ...]]:
    """A run with its pods and the events about them; and what could not be read.

    Raises:
        ClusterError: no answer.
    """
    view = run_view(named_run.raw or {}, run_name=named_run.run_name)
    if named_run.raw is None or view.placement is None:
        return view, ()
    missing: list[str] = []
    pods = _if_allowed(
        api,
        PODS,
        named_run.namespace,
        "gates, and what Kubernetes says of waiting pods, are not shown",
        missing,
        label_selector=f"{WORKFLOW_LABEL}={named_run.name}",
    )
    events = _if_allowed(
        api,
        EVENTS,
        named_run.namespace,
        "why pods are not on their planned nodes is not shown",
        missing,
        field_selector=f"reason={PLACED_ELSEWHERE}",
    )
    by_step = pods_by_step(pods, events, named_run.name, step_names(view))
    return run_view(named_run.raw, by_step, named_run.run_name), tuple(missing)


def _if_allowed(
    api: Api,
    kind: Kind,
    namespace: str,
    without: str,
    missing: list[str],
    *,
    label_selector: str = "",
    field_selector: str = "",
) -> list[JsonObject]:
    objects: list[JsonObject] = []
    try:
        for page in api.pages(
            kind,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
        ):
            objects += page.items
            if len(objects) >= MAX_PODS:
                missing.append(f"only {MAX_PODS} {kind.plural} are looked at")
                break
    except ClusterForbiddenError as error:
        missing.append(f"{error}; {without}")
    return objects


def _placements(
    api: Api, namespace: str, *, label_selector: str = "", field_selector: str = ""
) -> Iterator[JsonObject]:
    try:
        for page in api.pages(
            PLACEMENTS,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            limit=_PLACEMENTS_PAGE,
        ):
            yield from page.items
    except ClusterMissingError as error:
        raise ClusterMissingError(NOT_INSTALLED.format(PLACEMENTS.kind)) from error


def _named_runs(placements: Iterable[JsonObject]) -> list[NamedRun]:
    views = ((raw, run_view(raw)) for raw in placements)
    return [NamedRun(view.namespace, view.name, view.run_name, raw) for raw, view in views]


def _named(api: Api, kind: Kind, namespace: str, wanted: str) -> Iterator[NamedRun]:
    """Objects of that name, run id or run name, by their metadata alone."""
    for page in api.pages(kind, namespace=namespace, limit=NAMES_PAGE):
        for raw in page.items:
            view = run_view(raw)
            if wanted in (view.name, view.run_id, view.run_name):
                yield NamedRun(view.namespace, view.name, view.run_name)


def _plans_named(api: Api, namespace: str, wanted: str) -> Iterator[NamedRun]:
    try:
        yield from _named(api, PLACEMENT_METADATA, namespace, wanted)
    except ClusterMissingError as error:
        raise ClusterMissingError(NOT_INSTALLED.format(PLACEMENTS.kind)) from error


def _workflows_named(api: Api, namespace: str, wanted: str) -> Iterator[NamedRun]:
    """Workflows of that name, run id or run name.

    Raises:
        ClusterMissingError: we may not look.
    """
    try:
        yield from _named(api, WORKFLOW_METADATA, namespace, wanted)
    except ClusterForbiddenError as error:
        raise ClusterMissingError(
            f"no plan is that of a Workflow, run id or run name {shown(wanted, 120)!r}, and runs"
            f" without a plan cannot be looked up: {error}"
        ) from error
    except ClusterMissingError:
        # No Argo here, so no runs.
        return


def _placement_of(api: Api, named_run: NamedRun) -> JsonObject | None:
    return api.get(PLACEMENTS, named_run.name, named_run.namespace)


def lacks_namespace(api: Api, namespace: str) -> bool:
    """There is no such namespace; False where we may not know.

    Raises:
        ClusterError: no answer.
    """
    try:
        return api.get(NAMESPACES, namespace) is None
    except ClusterForbiddenError:
        return False


def object_if_allowed(api: Api, kind: Kind, name: str, namespace: str = "") -> JsonObject | None:
    """An object; None = there is none, or we may not know.

    Raises:
        ClusterError: no answer.
    """
    try:
        return api.get(kind, name, namespace)
    except ClusterForbiddenError:
        return None


def _latest_first(runs: list[RunView]) -> tuple[RunView, ...]:
    def key(run: RunView) -> float:
        return 0.0 if run.placement is None else -run.placement.spec.submitted_at.timestamp()

    return tuple(sorted(runs, key=lambda run: (key(run), run.namespace, run.name)))
