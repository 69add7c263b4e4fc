"""Reading Leases, and an election against a server in memory."""

import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_kube.exceptions import MalformedError
from kfp_placement_kube.lease import ElectionParams, LeaderElection, observe_lease
from kfp_placement_kube.observer import SILENT
from kfp_placement_kube.times import micro_time_text
from tests.controlplane.waiting import wait_until

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_lease(holder="scheduler-1", age_seconds=3.0, **spec):
    renewed = micro_time_text(NOW - timedelta(seconds=age_seconds))
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


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


def test_a_lease_says_who_and_how_often():
    lease = observe_lease(a_lease(leaseTransitions=4, leaseDurationSeconds=15))
    assert (lease.holder, lease.transitions, lease.duration_seconds) == ("scheduler-1", 4, 15)


@pytest.mark.parametrize(
    "spec", [{"acquireTime": "yesterday"}, {"leaseTransitions": -1}, {"holderIdentity": {}}]
)
def test_a_malformed_lease_is_refused(spec):
    with pytest.raises(MalformedError):
        observe_lease({"spec": spec})


def test_times_that_would_let_two_lead_are_refused():
    with pytest.raises(ValueError, match="renewal deadline"):
        ElectionParams(lease_seconds=10, renew_deadline_seconds=10.0)
