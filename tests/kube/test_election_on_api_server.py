"""Candidates for a Lease of a real API server."""

import contextlib
from datetime import UTC, datetime
from typing import Any

import pytest

from kfp_placement_kube.kinds import LEASES
from kfp_placement_kube.lease import ElectionParams, LeaderElection
from tests.controlplane.waiting import wait_until
from tests.support.api_client import a_client, unreachable

QUICK = ElectionParams(lease_seconds=2, renew_deadline_seconds=1.0, retry_seconds=0.1)


class Candidate:
    """Stands for election; can be cut off from the server."""

    def __init__(self, kubeconfig, namespace, identity):
        self.client: Any = a_client(kubeconfig, 5.0)
        self.epochs: list[int | None] = []
        self.election = LeaderElection(
            self.client,
            namespace,
            "the-lease",
            identity,
            clock=lambda: datetime.now(UTC),
            changed=self.epochs.append,
            params=QUICK,
            seed=0,
        )

    def cut_off(self):
        self.client.get = self.client.replace = self.client.create = unreachable


@pytest.fixture
def candidate(control_plane, namespace):
    with contextlib.ExitStack() as stopped:

        def start(identity):
            one = Candidate(control_plane.kubeconfig, namespace, identity)
            one.election.start()
            stopped.callback(one.election.stop)
            return one

        yield start


def wait_leads(one):
    return wait_until(lambda: one.election.epoch is not None, "a leader", state=lambda: one.epochs)


def test_one_of_two_leads_and_the_other_takes_over_at_once_when_it_stops(candidate):
    first = candidate("first")
    wait_leads(first)
    second = candidate("second")
    assert first.epochs == [0]
    first.election.stop()
    assert first.epochs == [0, None]
    assert first.election.epoch is None
    wait_leads(second)
    assert second.epochs == [1]


def test_a_leader_that_is_cut_off_ceases_before_another_leads(candidate):
    first = candidate("first")
    wait_leads(first)
    second = candidate("second")
    both = []

    def second_leads():
        # In this order: who is asked first may cease, but never begin, in between.
        epochs = second.election.epoch, first.election.epoch
        if None not in epochs:
            both.append(epochs)
        return epochs[0] is not None

    first.cut_off()
    wait_until(second_leads, "the second to lead")
    assert both == []
    assert second.election.epoch == 1
    wait_until(
        lambda: first.epochs == [0, None], "the first to be told", state=lambda: first.epochs
    )


def test_a_process_that_comes_back_under_its_name_is_a_new_leader(candidate, client, namespace):
    first = candidate("same-name")
    wait_leads(first)
    first.cut_off()
    first.election.stop()
    assert client.get(LEASES, "the-lease", namespace)["spec"]["holderIdentity"] == "same-name"
    again = candidate("same-name")
    wait_leads(again)
    assert again.election.epoch == 1


def test_a_leader_whose_lease_was_taken_over_leads_no_longer(candidate, client, namespace):
    first = candidate("first")
    wait_leads(first)
    stolen = {"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 3600}}
    client.patch(LEASES, "the-lease", namespace, stolen)
    wait_until(lambda: first.epochs == [0, None], "the end", state=lambda: first.epochs)
    assert first.election.epoch is None
