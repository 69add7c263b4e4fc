"""Many of KFP's own pipelines at a time under one installation, and what is left of them."""

import contextlib
import fnmatch
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kfp_placement_engine.contract.custom_resources import PipelinePlacement
from kfp_placement_kube.kinds import JsonObject
from tests.controller.cluster_bench.recorder import SeenPlan
from tests.controller.end_to_end.history import History
from tests.controller.end_to_end.recorded_pipelines import CLAIM, Recorded
from tests.controller.end_to_end.taxi_runs import is_marked
from tests.controller.end_to_end.teams import Team, team_of
from tests.controlplane import housekeeping, objects
from tests.controlplane.argo.program import ArgoProgram
from tests.controlplane.argo.state import ANNOTATION_NODE_NAME
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.kubelet.drivers import DriverChoices
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.stages import LOCAL_STORAGE_CLASS
from tests.controlplane.waiting import wait_until
from tests.support.installation import Installation, InstallationOptions

POLICY = {"engine": {"budget": "300ms"}}
"""Runs are short here, so planning must be too; what a driver takes is left to be learned."""

OVER = {"Succeeded", "Failed", "Refused"}
"""Phases of a placement that stay."""

TIMEOUT_SECONDS = 240.0
"""Limit of the time for all runs together."""


@dataclass(frozen=True)
class EndedRun:
    """What is left of a run.

    Attributes:
        recorded: which.
        workflow: at its end.
        placement: at its end.
        pods: all it had.
        written: every version of its placement.
        planned: uid of a marked pod -> nodes that plans wanted it on while it waited.
        explained: names of pods of which an event says why they are elsewhere.
    """

    recorded: Recorded
    workflow: JsonObject
    placement: PipelinePlacement
    pods: Sequence[JsonObject]
    written: Sequence[SeenPlan]
    planned: Mapping[str, set[str]]
    explained: frozenset[str]

    @property
    def marked(self) -> list[JsonObject]:
        """Pods that bear our mark."""
        return [pod for pod in self.pods if is_marked(pod)]

    @property
    def deviating(self) -> list[JsonObject]:
        """Marked pods that are on no node that was planned for them."""
        return [
            pod
            for pod in self.marked
            if pod["spec"]["nodeName"] not in self.planned[pod["metadata"]["uid"]]
        ]


def nodes() -> list[JsonObject]:
    """Four nodes of two speeds, all with a fast store and at some distance from every place."""
    round_trips = {
        "a": ("9.8", "0.3", "20"),
        "b": ("0.9", "12", "20"),
        "c": ("15", "12", "0.8"),
        "d": ("9.8", "0.5", "20"),
    }
    all_nodes = []
    for name, (home, cloud, nitlab) in round_trips.items():
        labels = {
            "HOME-EDGE": home,
            "NITOS-CLOUD": cloud,
            "NITLAB-EDGE": nitlab,
            "kfp-placement.dev/speed": "2" if name in "ad" else "1",
            "kfp-placement.dev/store-bandwidth": "1T",
        }
        room = {"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}
        all_nodes.append(objects.node(name, room, labels))
    return all_nodes


def options_for(
    runs: Sequence[Recorded], features: tuple[str, ...], argo: ArgoProgram | None
) -> InstallationOptions:
    """An installation whose drivers and pods do what the runs say."""
    choices = {each.run: each.choices for each in runs}
    codes = {
        f"{each.run}{pattern}": code for each in runs for pattern, code in each.exit_codes.items()
    }
    return InstallationOptions(
        features=features,
        policy=POLICY,
        choices=lambda run: choices.get(run, DriverChoices()),
        exit_codes=codes,
        packages={each.run: each.package for each in runs if each.is_kfp3},
        argo=argo,
    )


def run_to_end(
    runs: Sequence[Recorded], features: tuple[str, ...] = (), argo: ArgoProgram | None = None
) -> Mapping[str, EndedRun]:
    """All runs at once, each in a namespace of its own, to their end.

    Args:
        runs: which.
        features: of the installation.
        argo: Argo's own controller; None = the stand-in.

    Raises:
        ControlPlaneError: a run does not end; the processes' logs are noted.
    """
    with contextlib.ExitStack() as stack:
        plane = stack.enter_context(ControlPlane(PlaneOptions(simulate_pods=False)))
        housekeeping.add_nodes(plane.api, *nodes())
        options = options_for(runs, features, argo)
        installation = stack.enter_context(Installation(plane, options))
        history = stack.enter_context(History(installation.api))
        teams = {each.run: stack.enter_context(team_of(installation)) for each in runs}
        for team in teams.values():
            installation.api.create(objects.claim(CLAIM, team.name, LOCAL_STORAGE_CLASS))
        for each in runs:
            teams[each.run].submit(each.workflow())
        try:
            for each in runs:
                if each.lost:
                    lose(teams[each.run], f"{each.run}{each.lost}")
            return {each.run: ended(teams[each.run], each, history) for each in runs}
        except ControlPlaneError as error:
            for name, text in installation.logs().items():
                error.add_note(f"end of {name}'s log:\n{text}")
            raise


def lose(team: Team, pattern: str) -> None:
    """Delete a pod once it runs."""

    def running() -> list[JsonObject]:
        return [
            pod
            for pod in team.pods()
            if fnmatch.fnmatchcase(pod["metadata"]["annotations"][ANNOTATION_NODE_NAME], pattern)
            and pod["status"].get("phase") == "Running"
        ]

    (pod,) = wait_until(running, f"a pod {pattern}", TIMEOUT_SECONDS)
    team.api.delete(pod)


def ended(team: Team, recorded: Recorded, history: History) -> EndedRun:
    """Wait for a run's end, and for its placement to say so."""
    workflow = team.wait_for_end(recorded.run, TIMEOUT_SECONDS)

    def closed() -> PipelinePlacement | None:
        stored = team.placement(recorded.run)
        over = stored is not None and stored.status is not None and stored.status.phase in OVER
        return stored if over else None

    placement = wait_until(closed, f"the end of {recorded.run}'s placement")
    assert placement is not None
    pods = team.pods()
    return EndedRun(
        recorded,
        workflow,
        placement,
        pods,
        history.written(recorded.run, team.name),
        {pod["metadata"]["uid"]: history.planned_for(pod) for pod in pods if is_marked(pod)},
        explained(team),
    )


def explained(team: Team) -> frozenset[str]:
    """Pods of which an event says why they are not where they were planned."""
    events = team.api.list("events.k8s.io/v1", "Event", team.name)
    return frozenset(
        event["regarding"]["name"] for event in events if event.get("reason") == "PlacedElsewhere"
    )
