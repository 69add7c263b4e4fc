"""Writing PipelinePlacements to a real API server."""

from datetime import UTC, datetime

import pytest

from kfp_placement_controller.actuators.placements import (
    MOST_EPOCH,
    PlacementWriter,
    stored_version,
)
from kfp_placement_controller.exceptions import SupersededError
from kfp_placement_controller.kinds import PLACEMENTS
from kfp_placement_engine.contract.custom_resources import PipelinePlacement, read_resource
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError
from tests.support.placements import planned_nodes

pytestmark = pytest.mark.usefixtures("our_kinds")

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def writer(client):
    return PlacementWriter(client)


@pytest.fixture
def a_placement(namespace):
    def build(status=None, **spec):
        written = {
            "workflowUID": "w1",
            "revision": 1,
            "epoch": 1,
            "submittedAt": NOW,
            "plannedAt": NOW,
            "nodes": ["n1"],
            "steps": [["train", 0, 0, 10]],
            **spec,
        }
        metadata = {"name": "run", "namespace": namespace}
        resource = {"metadata": metadata, "spec": written, "status": status}
        return read_resource(PipelinePlacement, resource)

    return build


@pytest.fixture
def stored(client, namespace):
    def read():
        return read_resource(PipelinePlacement, client.get(PLACEMENTS, "run", namespace))

    return read


def test_a_plan_is_created_then_changed_and_its_status_stays(writer, a_placement, stored):
    last = writer.write_plan(a_placement(makespan="10s", firstMakespan="10s"), None)
    running = a_placement(status={"phase": "Running", "revision": 1, "progress": "0/1"})
    last = writer.write_status(running, last)
    steps = [["train", 0, 5, 15]]
    last = writer.write_plan(a_placement(revision=2, steps=steps, firstMakespan="10s"), last)
    placement = stored()
    assert placement.spec.revision == 2
    assert planned_nodes(placement) == {"train": "n1"}
    assert placement.spec.makespan_seconds is None
    assert placement.spec.first_makespan_seconds == 10
    assert (placement.status.phase, placement.status.progress) == ("Running", "0/1")
    writer.write_status(a_placement(status={"phase": "Failed"}), last)
    assert (stored().status.phase, stored().status.progress) == ("Failed", None)
    assert stored().spec.revision == 2


def test_a_write_between_others_is_done_on_what_there_is_now(
    writer, client, namespace, a_placement, stored
):
    last = writer.write_plan(a_placement(), None)
    client.patch(PLACEMENTS, "run", namespace, {"metadata": {"labels": {"theirs": "1"}}})
    writer.write_plan(a_placement(revision=2), last)
    assert stored().spec.revision == 2
    assert stored().metadata.labels == {"theirs": "1"}


@pytest.mark.parametrize("knows", [True, False])
def test_a_higher_epoch_is_never_overwritten(writer, a_placement, stored, knows):
    old = writer.write_plan(a_placement(), None)
    newer = writer.write_plan(a_placement(epoch=2, revision=2, nodes=["n2"]), old)
    late = a_placement(revision=3, status={"phase": "Failed"})
    with pytest.raises(SupersededError, match="epoch 2"):
        writer.write_plan(late, newer if knows else old)
    with pytest.raises(SupersededError, match="epoch 2"):
        writer.write_status(late, newer if knows else old)
    assert stored().spec.nodes == ("n2",)
    assert stored().status is None


def test_a_planner_that_knows_nothing_of_it_looks_first(writer, a_placement, stored):
    writer.write_plan(a_placement(epoch=2, revision=2), None)
    with pytest.raises(SupersededError):
        writer.write_plan(a_placement(revision=3), None)
    writer.write_plan(a_placement(epoch=3, revision=3), None)
    assert stored().spec.epoch == 3


@pytest.mark.parametrize(
    "theirs",
    [{"workflowUID": "w0"}, {"revision": 5}, {"firstMakespan": "7s"}, {"epoch": MOST_EPOCH + 1}],
)
@pytest.mark.parametrize("knows", [True, False])
def test_what_cannot_be_gone_on_from_is_made_anew(writer, a_placement, stored, theirs, knows):
    last = writer.write_plan(a_placement(**theirs), None)
    writer.write_plan(a_placement(revision=2, firstMakespan="9s"), last if knows else None)
    assert stored().spec.revision == 2
    assert stored().spec.epoch == 1
    assert stored().spec.first_makespan_seconds == 9
    assert stored().metadata.uid != last.uid


def test_a_plan_that_is_wrong_itself_removes_nothing(writer, a_placement, stored):
    last = writer.write_plan(a_placement(), None)
    good = a_placement(revision=2)
    wrong = good.model_copy(update={"spec": good.spec.model_copy(update={"revision": 0})})
    with pytest.raises(KubernetesError, match="revision"):
        writer.write_plan(wrong, last)
    assert stored().metadata.uid == last.uid


def test_a_plan_that_somebody_deleted_is_written_again(
    writer, client, namespace, a_placement, stored
):
    last = writer.write_plan(a_placement(), None)
    client.delete(PLACEMENTS, "run", namespace)
    writer.write_plan(a_placement(revision=2), last)
    assert stored().spec.revision == 2


def test_a_status_without_a_plan_is_refused(writer, client, namespace, a_placement):
    last = writer.write_plan(a_placement(), None)
    client.delete(PLACEMENTS, "run", namespace)
    with pytest.raises(NotFoundError):
        writer.write_status(a_placement(status={"phase": "Failed"}), last)
    assert client.get(PLACEMENTS, "run", namespace) is None


def test_the_largest_that_fits_is_taken_by_the_server(writer, a_placement):
    rows = [["s" * 900, 0, 0, 1, ["x", "y" * 60]]] * 1000
    last = writer.write_plan(a_placement(steps=rows), None)
    changed = writer.write_plan(a_placement(revision=2, steps=rows[1:]), last)
    assert changed.resource_version != last.resource_version


def test_a_version_can_be_read_whatever_else_is_written():
    raw = {"metadata": {"uid": "u", "resourceVersion": "5"}, "spec": {"steps": "nonsense"}}
    version = stored_version(raw)
    assert (version.uid, version.resource_version, version.epoch) == ("u", "5", 0)
    with pytest.raises(InputError):
        stored_version({"spec": {"epoch": "many"}})
