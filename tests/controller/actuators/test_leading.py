"""Who leads and with which epoch, and how what is stored is gone on from."""

from datetime import timedelta
from typing import Any
from unittest.mock import NonCallableMock

import pytest

from kfp_placement_controller.actuators.leading import RETRY_SECONDS, Leading
from kfp_placement_controller.actuators.placements import MOST_EPOCH
from kfp_placement_controller.actuators.plan_actions import ActionRunner
from kfp_placement_controller.observed.namespaces import ObservedNamespace
from kfp_placement_controller.observed.nodes import observe_node
from kfp_placement_controller.planning.actions import SayFindings
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.planning.rounds import PlanningRound, plan_round
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.sources.argo.workflow_object import WORKFLOWS
from kfp_placement_controller.sources.argo.workflows import observe_workflow
from kfp_placement_engine.contract.custom_resources import PlacementPolicy
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_kube.change import Change
from kfp_placement_kube.exceptions import UnreachableError
from kfp_placement_kube.kinds import NAMESPACES, NODES
from tests.controller.memory_placements import MemoryPlacements
from tests.controller.planning.builders import a_policy, after
from tests.controller.planning.test_recordings import recorded_workflow
from tests.support.kubernetes import node_object

LOOK_SECONDS = 0.05
RUN = RunKey("team", "run")


class AnElection:
    """Does at the next look what it is asked for."""

    def __init__(self, epoch: int | None, *, obeys: bool = True) -> None:
        self.epoch = epoch
        self.asked: list[int] = []
        self._obeys = obeys

    def raise_epoch(self, least: int) -> None:
        """Noted, and done unless somebody else has the Lease by now."""
        self.asked.append(least)
        if self._obeys and self.epoch is not None:
            self.epoch = max(self.epoch, least)


class Scene:
    """One planner on an API server that others use too."""

    def __init__(self, api: Any, epoch: int | None, **options: bool) -> None:
        self.api = api
        self.now = after(1)
        self.coordinator = Coordinator(
            DEFAULT_SOURCES, self.monotonic, policy=PlacementPolicy(spec=a_policy())
        )
        election: Any = AnElection(epoch, **options)
        nobody = NonCallableMock(spec=["record", "submit"])
        self.election = election
        self.runner = ActionRunner(api, nobody, nobody, lambda: self.now, *[nobody] * 4)
        self.leading = Leading(election, self.runner, lambda: self.now, self.monotonic)
        node = observe_node(node_object("n0", allocatable={"cpu": "8", "memory": "32Gi"}))
        self.coordinator.handle(NODES, Change(("", "n0"), None, node), self.now)

    def monotonic(self) -> float:
        return self.now.timestamp()

    def submit(self, name: str = "run", uid: str = "w1") -> None:
        """A run becomes known."""
        raw = recorded_workflow("taxi")
        metadata = {"name": name, "namespace": "team", "uid": uid}
        raw["metadata"] |= {**metadata, "creationTimestamp": after(0).isoformat()}
        workflow = observe_workflow(raw)
        assert workflow is not None
        self.coordinator.handle(WORKFLOWS, Change(workflow.key, None, workflow), self.now)

    def pass_seconds(self, seconds: float) -> None:
        """As the process does, look after look."""
        for _ in range(round(seconds / LOOK_SECONDS)):
            self.now += timedelta(seconds=LOOK_SECONDS)
            self.leading.follow_election(self.coordinator)
            for action in self.coordinator.tick(self.now):
                if isinstance(action, PlanningRound):
                    self.coordinator.round_ended(plan_round(action), self.now)
                elif not isinstance(action, SayFindings):
                    self.runner.run(action, self.coordinator)

    def spec(self) -> dict[str, Any]:
        return self.api.objects[RUN]["spec"]


@pytest.fixture
def api():
    return MemoryPlacements()


def epochs(api: MemoryPlacements) -> set[int]:
    """Those of all runs, as they are stored."""
    assert api.objects
    return {each["spec"]["epoch"] for each in api.objects.values()}


def a_scene(api, epoch: int | None, seconds: float = 5, **options: bool) -> Scene:
    """A planner that knows the run and has worked for a while."""
    scene = Scene(api, epoch, **options)
    scene.submit()
    scene.pass_seconds(seconds)
    return scene


def planned_by_another(api, epoch=3) -> dict[str, Any]:
    """A planner has led and gone; returns what it has written of the run."""
    scene = a_scene(api, epoch, 20)
    assert scene.spec()["epoch"] == epoch
    assert scene.spec()["revision"] > 1
    api.calls.clear()
    return dict(scene.spec())


def test_who_leads_first_keeps_the_epoch_of_its_lease(api):
    scene = a_scene(api, 0)
    assert scene.election.asked == []
    assert scene.spec()["epoch"] == 0


@pytest.mark.parametrize("epoch", [0, 3])
def test_with_a_lease_made_anew_the_epoch_is_raised_above_all_that_is_stored(api, epoch):
    before = planned_by_another(api)
    scene = Scene(api, epoch)
    scene.submit()
    scene.submit("another", "w2")
    scene.pass_seconds(10)
    assert scene.election.asked == [4]
    assert (epochs(api), len(api.objects)) == ({4}, 2)
    assert scene.spec()["firstMakespan"] == before["firstMakespan"]
    assert api.calls["list"] == 2
    assert api.refused == []


def test_a_planner_whose_lease_is_deleted_under_it_goes_on(api):
    scene = a_scene(api, 5)
    scene.election.epoch = 0
    scene.submit("another", "w2")
    scene.pass_seconds(5)
    assert scene.election.asked == [6]
    assert epochs(api) == {6}


def test_an_epoch_that_we_have_led_with_is_not_raised(api):
    scene = a_scene(api, 5)
    scene.election.epoch = None
    scene.pass_seconds(5)
    scene.election.epoch = 5
    scene.pass_seconds(5)
    assert scene.election.asked == []
    assert scene.coordinator.epoch == 5


def test_one_that_is_superseded_does_not_spin(api):
    """Another leads with a higher epoch, and our Lease does not say so yet."""
    planned_by_another(api, epoch=9)
    scene = a_scene(api, 3, 20, obeys=False)
    assert 1 < api.calls["list"] <= 20 / RETRY_SECONDS
    assert scene.coordinator.epoch is None
    assert scene.spec()["epoch"] == 9


def test_one_that_is_superseded_later_ceases_and_reads_anew(api):
    scene = a_scene(api, 3, obeys=False)
    api.objects[RUN]["spec"]["epoch"] = 4
    api.objects[RUN]["metadata"]["resourceVersion"] = "77"
    scene.coordinator.publisher.take_over([])
    scene.pass_seconds(10)
    assert scene.coordinator.epoch is None
    assert scene.election.asked[0] == 5
    assert api.calls["list"] <= 2 + 10 / RETRY_SECONDS


def test_a_server_that_does_not_answer_is_not_asked_at_every_look(api, monkeypatch):
    scene = Scene(api, 3)

    def broken(*arguments, **options):
        api.calls["list"] += 1
        raise UnreachableError("down")

    monkeypatch.setattr(api, "list", broken)
    scene.pass_seconds(10)
    assert 1 < api.calls["list"] <= 1 + 10 / RETRY_SECONDS
    assert scene.coordinator.epoch is None


@pytest.mark.parametrize("epoch", [MOST_EPOCH - 1, MOST_EPOCH])
def test_the_highest_epoch_that_is_believed_is_led_with_and_gone_beyond(api, epoch):
    """Anybody who may write in one namespace may make it up: all runs keep their plans."""
    planned_by_another(api)
    api.objects[RUN]["spec"]["epoch"] = epoch
    uid = api.objects[RUN]["metadata"]["uid"]
    scene = Scene(api, 4)
    scene.submit()
    scene.submit("another", "w2")
    scene.pass_seconds(30)
    assert scene.election.asked == [epoch + 1]
    assert epochs(api) == {epoch + 1}
    successor = Scene(api, epoch + 2)
    successor.submit()
    successor.submit("another", "w2")
    successor.pass_seconds(30)
    assert successor.election.asked == []
    assert epochs(api) == {epoch + 2}
    assert api.objects[RUN]["metadata"]["uid"] == uid
    assert api.calls["delete"] == 0
    assert api.calls["create"] == 1
    assert api.refused == []


def test_epochs_that_somebody_makes_up_again_and_again_are_gone_beyond_once(api):
    scene = a_scene(api, 4)
    for made_up in (MOST_EPOCH, MOST_EPOCH + 1, MOST_EPOCH + 2, 2**31, 2**60):
        api.objects[RUN]["spec"]["epoch"] = made_up
        api.objects[RUN]["metadata"]["resourceVersion"] += "0"
        scene.coordinator.publisher.take_over([])
        scene.pass_seconds(10)
        assert scene.spec()["epoch"] == MOST_EPOCH + 1
    assert scene.election.asked == [MOST_EPOCH + 1]


def test_a_run_that_becomes_known_after_we_lead_goes_on_where_it_was(api):
    before = planned_by_another(api)
    scene = Scene(api, 4)
    scene.pass_seconds(5)
    scene.submit()
    scene.pass_seconds(5)
    assert api.refused == []
    assert scene.spec()["epoch"] == 4
    assert scene.spec()["revision"] >= before["revision"]
    assert scene.spec()["firstMakespan"] == before["firstMakespan"]


def test_a_namespace_that_comes_back_has_its_runs_adopted(api):
    before = planned_by_another(api)
    scene = Scene(api, 4)
    out = Change(("", "team"), None, ObservedNamespace("false"))
    scene.coordinator.handle(NAMESPACES, out, scene.now)
    scene.submit()
    scene.pass_seconds(2)
    assert scene.spec() == before
    back = Change(("", "team"), ObservedNamespace("false"), ObservedNamespace())
    scene.coordinator.handle(NAMESPACES, back, scene.now)
    scene.submit()
    scene.pass_seconds(5)
    assert api.refused == []
    assert scene.spec()["epoch"] == 4
    assert scene.spec()["firstMakespan"] == before["firstMakespan"]


@pytest.mark.parametrize(
    ("spec", "refused"),
    [({"revision": 900, "steps": "nonsense"}, ["revisions only grow"]), ({"epoch": "many"}, [])],
)
def test_a_plan_that_cannot_be_read_is_made_anew(api, spec, refused):
    planned_by_another(api)
    api.objects[RUN]["spec"] |= spec
    scene = a_scene(api, 4)
    assert scene.spec()["epoch"] == 4
    assert scene.spec()["revision"] < 900
    assert api.refused == refused
    assert api.calls["delete"] == 1
    assert api.objects[RUN]["status"]["phase"] == "Planned"


def test_a_plan_that_is_refused_for_itself_removes_nothing_and_is_said_once(
    api, monkeypatch, caplog
):
    before = planned_by_another(api)
    scene = Scene(api, 4)
    scene.submit()

    def refused(*arguments, **options):
        api.refuse("not well formed")

    monkeypatch.setattr(api, "create", refused)
    monkeypatch.setattr(api, "patch", refused)
    scene.pass_seconds(20)
    assert scene.spec() == before
    assert len(api.refused) > 5
    assert caplog.text.count("is not written") == 1


def test_a_run_that_is_gone_is_forgotten(api):
    scene = a_scene(api, 4)
    assert scene.runner.highest_epoch == 4
    run = scene.coordinator.registry.runs[RUN]
    scene.coordinator.handle(WORKFLOWS, Change(RUN, run.observed, None), scene.now)
    scene.pass_seconds(1)
    assert scene.runner.highest_epoch == -1
