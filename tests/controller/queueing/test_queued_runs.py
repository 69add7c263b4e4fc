"""Runs as queues see them, in whatever order their objects are seen."""

import pytest

from kfp_placement_controller.sources.source import RunEnd
from tests.controller.queueing.scene import Played, a_node, a_queue, a_run, demand


@pytest.fixture
def scene() -> Played:
    made = Played(a_queue(), nodes=[a_node()])
    made.submit(a_run("run"), demand=demand(cpu="1"))
    assert made.settle() == ["run begins: admitted"]
    assert made.written["run"]["phase"] == "Admitted"
    return made


def test_a_run_that_ends_while_nobody_leads_is_finished_by_the_next_leader(scene):
    """It reads RunRequests after Workflows."""
    scene.change(scene.known["run"], end=RunEnd.SUCCEEDED)
    scene.lead_again()
    assert scene.settle() == []
    assert scene.written["run"]["phase"] == "Finished"
