"""What `make demo-cluster` tells of a run."""

import pytest

from tests.controller.demo_cluster import Story
from tests.controller.end_to_end.taxi_runs import STEPS, taxi
from tests.controlplane.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.slow]


def test_the_story_is_told_to_its_end(installation, team):
    lines: list[str] = []
    run = installation.submit(taxi(), team)
    story = Story(installation, run, team, lines.append)

    def goes_on() -> bool:
        story.go_on()
        return story.ended

    wait_until(goes_on, "the end of the story", 60, lambda: lines)

    assert story.phase == "Succeeded"
    placed = {line.split()[2]: line for line in lines if "as planned, by kfp-placement" in line}
    assert set(placed) == STEPS
    assert "home-edge-node" in placed["predict"]
    assert any("lowest round trip to HOME-EDGE" in line for line in lines)
    assert "the run has succeeded; planned were" in lines[-1]
