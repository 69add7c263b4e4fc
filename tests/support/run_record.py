"""What runs have taken from their quotas, at every moment, as the API server has stored it."""

import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from kfp_placement_engine.contract.keys import API_VERSION
from kfp_placement_engine.units.quantities import parse_cpu
from kfp_placement_kube.kinds import JsonObject
from tests.controller.hold_cases import is_held
from tests.controlplane.api import Api
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.argo.state import LABEL_COMPLETED, LABEL_WORKFLOW
from tests.controlplane.argo.watching import Watched, Watching, version_of

EXECUTOR = "container-impl"
"""Part of the names of pods that execute steps."""


@dataclass(frozen=True)
class Quota:
    """What the runs of a namespace may take together.

    Attributes:
        runs: number of runs.
        cpu_milli: milli-CPU.
    """

    runs: int
    cpu_milli: int


@dataclass(frozen=True)
class _State:
    """A Workflow or a pod as it was stored.

    Attributes:
        kind: `Workflow` or `Pod`.
        namespace: its namespace.
        run: name of the run.
        name: name of the object.
        uid: uid of the object.
        takes: whether it has been let go, or runs or may run, and has not ended.
        has_begun: whether its container runs or has run.
        cpu_milli: milli-CPU that a pod requests.
    """

    kind: str
    namespace: str
    run: str
    name: str
    uid: str
    takes: bool
    has_begun: bool = False
    cpu_milli: int = 0


class RunRecord:
    """Records all states of runs and pods; a context manager.

    Versions of objects are those of the whole store, so states of several kinds have one order.
    """

    def __init__(self, api: Api) -> None:
        self._states: dict[tuple[int, str], _State] = {}
        self._demands: dict[tuple[str, str], int] = {}
        self._lock = threading.Lock()
        kinds = ((ARGO_VERSION, "Workflow"), ("v1", "Pod"), (API_VERSION, "RunRequest"))
        self._watching = Watching(*(Watched(api, *kind, self._saw) for kind in kinds))

    def __enter__(self) -> Self:
        self._watching.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._watching.__exit__(*error)

    def _saw(self, item: JsonObject) -> None:
        metadata = item["metadata"]
        with self._lock:
            if item["kind"] == "RunRequest":
                demand = demanded_cpu_milli(item)
                self._demands[metadata["namespace"], metadata["name"]] = demand
                return
            state = _workflow(item) if item["kind"] == "Workflow" else _pod(item)
            if state is not None:
                self._states[version_of(item), metadata["uid"]] = state

    def check(self, quotas: Mapping[str, Quota], steps: Mapping[tuple[str, str], int]) -> None:
        """Go through all that has happened.

        Args:
            quotas: quotas by namespace.
            steps: number of steps of each run, by namespace and name.

        Raises:
            AssertionError: more was taken than a quota, or a run or a step began twice or never.
        """
        with self._lock:
            history = [state for _, state in sorted(self._states.items(), key=lambda each: each[0])]
        now: dict[str, _State] = {}
        let_go: Counter[tuple[str, str]] = Counter()
        begun: defaultdict[tuple[str, str], dict[str, set[str]]] = defaultdict(dict)
        for state in history:
            before = now.get(state.uid)
            now[state.uid] = state
            run = (state.namespace, state.run)
            if state.kind == "Workflow" and state.takes and not (before and before.takes):
                let_go[run] += 1
            if state.kind == "Pod" and state.has_begun:
                begun[run].setdefault(state.name, set()).add(state.uid)
            if quota := quotas.get(state.namespace):
                self._check_quota(quota, [*_of(now.values(), state.namespace)])
        for run, number in steps.items():
            assert let_go[run] == 1, f"{run} was let go {let_go[run]} times"
            pods = {name: uids for name, uids in begun[run].items() if EXECUTOR in name}
            assert len(pods) == number, f"{run}: {sorted(pods)}"
            assert all(len(uids) == 1 for uids in begun[run].values()), f"{run}: {begun[run]}"

    def _check_quota(self, quota: Quota, taking: Iterable[_State]) -> None:
        runs = [each for each in taking if each.kind == "Workflow"]
        assert len(runs) <= quota.runs, f"{[each.name for each in runs]} at once"
        demanded = sum(self._demands[each.namespace, each.name] for each in runs)
        assert demanded <= quota.cpu_milli, f"{demanded}m of {quota} are demanded"
        used = sum(each.cpu_milli for each in taking if each.kind == "Pod")
        assert used <= quota.cpu_milli, f"{used}m of {quota} are used"


def demanded_cpu_milli(request: JsonObject) -> int:
    """Return the milli-CPU that a RunRequest says that its run needs at a time."""
    peak = (request["spec"].get("demand") or {}).get("peak") or []
    return sum(parse_cpu(each["amount"]) for each in peak if each["name"] == "cpu")


def _of(states: Iterable[_State], namespace: str) -> Iterable[_State]:
    """Those of a namespace that take something."""
    return (each for each in states if each.namespace == namespace and each.takes)


def _workflow(item: JsonObject) -> _State:
    metadata = item["metadata"]
    has_ended = (metadata.get("labels") or {}).get(LABEL_COMPLETED) == "true"
    takes = not is_held(item) and not has_ended and "deletionTimestamp" not in metadata
    name = metadata["name"]
    return _State("Workflow", metadata["namespace"], name, name, metadata["uid"], takes)


def _pod(item: JsonObject) -> _State | None:
    metadata, phase = item["metadata"], item["status"].get("phase")
    run = (metadata.get("labels") or {}).get(LABEL_WORKFLOW)
    if run is None:
        return None
    requests = [
        each.get("resources", {}).get("requests", {}) for each in item["spec"]["containers"]
    ]
    return _State(
        "Pod",
        metadata["namespace"],
        run,
        metadata["name"],
        metadata["uid"],
        takes=phase in ("Pending", "Running") and "deletionTimestamp" not in metadata,
        has_begun=phase in ("Running", "Succeeded", "Failed"),
        cpu_milli=sum(parse_cpu(each.get("cpu", 0)) for each in requests),
    )
