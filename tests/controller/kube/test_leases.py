"""Reading Leases, and the limits of an election's times."""

from datetime import UTC, datetime, timedelta

import pytest

from kfp_placement_controller.kube.leases import ElectionParams, lease_age, observe_lease
from kfp_placement_controller.kube.times import micro_time_text
from kfp_placement_engine.exceptions import InputError

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def a_lease(holder="scheduler-1", age_seconds=3.0, **spec):
    renewed = micro_time_text(NOW - timedelta(seconds=age_seconds))
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


def test_the_age_of_a_lease_counts_from_its_renewal():
    assert lease_age(a_lease(age_seconds=3.5), NOW) == 3.5


@pytest.mark.parametrize("lease", [None, {}, {"spec": {}}, a_lease(holder="")])
def test_a_lease_that_nobody_holds_has_no_age(lease):
    assert lease_age(lease, NOW) is None


def test_a_lease_says_who_and_how_often():
    lease = observe_lease(a_lease(leaseTransitions=4, leaseDurationSeconds=15))
    assert (lease.holder, lease.transitions, lease.duration_seconds) == ("scheduler-1", 4, 15)


@pytest.mark.parametrize(
    "spec", [{"renewTime": "yesterday"}, {"leaseTransitions": -1}, {"holderIdentity": {}}]
)
def test_a_malformed_lease_is_refused(spec):
    with pytest.raises(InputError):
        observe_lease({"spec": spec})


def test_times_that_would_let_two_lead_are_refused():
    with pytest.raises(ValueError, match="renewal deadline"):
        ElectionParams(lease_seconds=10, renew_deadline_seconds=10.0)
