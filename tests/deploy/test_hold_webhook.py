"""What the webhook for runs is asked, and what happens when it is dead."""

import time
from typing import Any

import pytest

from kfp_placement_engine.readers.argo.keys import INSTANCE_LABEL
from tests.controller.hold_cases import BEGAN, COMPLETED, a_workflow, is_held
from tests.controlplane.waiting import wait_until
from tests.support.hold_webhook import HoldWebhook, would_hold
from tests.support.manifests import a_queue

MOST_SECONDS = 10.0
"""Limit for a creation that the webhook does not answer: 2 s, and more on a slow machine."""


@pytest.fixture(scope="module")
def webhook(control_plane, argo):
    """The webhook at work."""
    with HoldWebhook(control_plane, argo) as served:
        yield served


@pytest.fixture
def team(installed, webhook, namespace):
    """A namespace whose new runs wait."""
    queue = installed.create(a_queue(namespace))
    installed.patch(queue, {"status": {"ready": True}}, part="status")
    wait_until(lambda: would_hold(installed, namespace), "new Workflows to be held")
    return namespace


def test_what_argo_writes_into_a_run_that_goes_on_is_not_sent(installed, team, webhook):
    """It writes whenever a step begins or ends, up to a megabyte each time."""

    def asked() -> float:
        return sum(map(webhook.answers, ("changed", "unchanged", "malformed", "defect")))

    run = installed.create(a_workflow(team))
    labels: dict[str, Any] = {INSTANCE_LABEL: None}
    before = asked()
    assert not is_held(installed.patch(run, {"metadata": {"labels": labels}}))
    for count in range(5):
        installed.patch(run, {"status": {**BEGAN, "progress": f"{count}/5"}})
    installed.patch(run, {"metadata": {"labels": COMPLETED}})
    assert asked() == before
    again = installed.patch(run, {"metadata": {"labels": dict.fromkeys(COMPLETED)}})
    assert is_held(again)
    assert asked() == before + 1


def test_a_webhook_that_does_not_answer_lets_runs_begin(installed, team, webhook):
    webhook.process.pause()
    try:
        began = time.monotonic()
        assert not is_held(installed.create(a_workflow(team), dryRun="All"))
        assert time.monotonic() - began < MOST_SECONDS
    finally:
        webhook.process.resume()
    wait_until(lambda: would_hold(installed, team), "new Workflows to be held again")


def test_a_webhook_that_is_dead_lets_runs_begin(installed, team, webhook):
    webhook.process.kill()
    assert not is_held(installed.create(a_workflow(team), dryRun="All"))
    webhook.process.start()
    wait_until(lambda: would_hold(installed, team), "new Workflows to be held again")
