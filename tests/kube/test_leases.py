"""An election against a server in memory."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from kfp_placement_kube.lease import ElectionParams, LeaderElection
from kfp_placement_kube.observer import SILENT
from tests.controlplane.waiting import wait_until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


class OneLease:
    """An API server with room for one Lease, that passes for a client."""

    def __init__(self) -> None:
        self.lease: dict[str, Any] | None = None
        self.observer = SILENT

    def get(self, kind, name, namespace=""):
        """The Lease, if there is one."""
        return self.lease

    def create(self, kind, body):
        """There is one now."""
        self.lease = body
        return body

    replace = create

    def transitions(self) -> int:
        """As the Lease says; -1 = there is none."""
        return -1 if self.lease is None else int(self.lease["spec"]["leaseTransitions"])


@contextlib.contextmanager
def standing(server: Any):
    params = ElectionParams(lease_seconds=2, renew_deadline_seconds=1.0, retry_seconds=0.02)
    election = LeaderElection(server, "ns", "it", "me", clock=lambda: NOW, params=params, seed=0)
    election.start()
    try:
        wait_until(lambda: election.epoch is not None, "to lead")
        yield election
    finally:
        election.stop()


def test_an_epoch_is_raised_in_the_lease_too_and_stays():
    server = OneLease()
    with standing(server) as election:
        assert election.epoch == 0
        election.raise_epoch(4)
        election.raise_epoch(2)
        wait_until(lambda: election.epoch == 4, "the epoch")
        assert server.transitions() == 4
    with standing(server) as election:
        assert election.epoch == 5


def test_a_lease_that_is_made_again_does_not_fall_below_what_was_asked_for():
    server = OneLease()
    with standing(server) as election:
        election.raise_epoch(4)
        wait_until(lambda: election.epoch == 4, "the epoch")
        server.lease = None
        wait_until(lambda: server.transitions() >= 0, "the Lease")
        assert server.transitions() == 4


def test_times_that_would_let_two_lead_are_refused():
    with pytest.raises(ValueError, match="renewal deadline"):
        ElectionParams(lease_seconds=10, renew_deadline_seconds=10.0)
