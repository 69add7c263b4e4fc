"""What counts as a renewal of a Lease, for `plan` and `extend` alike."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kfp_placement_controller.actuators.guard import Guard
from kfp_placement_controller.extender.knowledge import Knowledge
from kfp_placement_controller.observed.liveness import (
    HeldLease,
    gates_finding,
    observe_held_lease,
    scheduler_finding,
)
from kfp_placement_controller.planning.coordinator import Coordinator
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_engine.contract.policy import PlacementPolicySpec
from kfp_placement_engine.exceptions import InputError
from kfp_placement_kube.change import Change

START = datetime(2026, 11, 21, 12, tzinfo=UTC)
FIRST, SECOND = "2026-11-21T07:00:00.000000Z", "2026-11-21T07:00:02.000000Z"


def a_lease(holder: str | None = "one", renewed: str | None = FIRST, **spec: Any) -> dict[str, Any]:
    return {"spec": {"holderIdentity": holder, "renewTime": renewed, **spec}}


def both_say(*leases: dict[str, Any] | None) -> list[str]:
    """What `plan` and `extend` find of our scheduler after each of these, a second apart."""
    now, seen = [START], None
    coordinator = Coordinator(DEFAULT_SOURCES, lambda: now[0].timestamp())
    guard = Guard(
        None,  # type: ignore[arg-type]
        lambda: Knowledge(DEFAULT_SOURCES),
        scheduler_lease="scheduler",
        planner_lease="planner",
        clock=lambda: now[0],
        monotonic=lambda: now[0].timestamp(),
    )
    reasons = []
    for raw in leases:
        now[0] += timedelta(seconds=1)
        held = None if raw is None else observe_held_lease(raw)
        guard.lease_changed(Change(("", "scheduler"), seen, held))
        coordinator.scheduler_lease(held)
        seen = held
        by_plan = scheduler_finding(
            coordinator.watchdog.scheduler_lease, PlacementPolicySpec(), now[0].timestamp()
        )
        by_extend = [each for each in guard.findings() if each != gates_finding(leads=False)]
        assert by_extend == ([] if by_plan is None else [by_plan])
        reasons.append("unknown" if by_plan is None else by_plan.reason)
    return reasons


@pytest.mark.parametrize(
    ("leases", "reasons"),
    [
        ([a_lease(), a_lease(renewed=SECOND)], ["unknown", "LeaseFresh"]),
        ([a_lease(), a_lease()], ["unknown", "unknown"]),
        ([a_lease(), a_lease("two")], ["unknown", "LeaseFresh"]),
        ([a_lease(), a_lease(leaseTransitions=4)], ["unknown", "unknown"]),
        ([a_lease(renewed=None), a_lease()], ["unknown", "LeaseFresh"]),
        ([a_lease(), a_lease(""), a_lease(renewed=SECOND)], ["unknown", "NoLease", "unknown"]),
        ([a_lease(), None], ["unknown", "NoLease"]),
    ],
    ids=["renewed", "not", "another holder", "not renewed", "no time", "given back", "gone"],
)
def test_plan_and_extend_agree_on_what_a_renewal_is(leases, reasons):
    assert both_say(*leases) == reasons


def test_nobody_holds_a_lease_without_a_name():
    assert observe_held_lease({}) is None
    assert observe_held_lease(a_lease(None)) is None
    assert observe_held_lease(a_lease()) == HeldLease("one", datetime(2026, 11, 21, 7, tzinfo=UTC))


@pytest.mark.parametrize("spec", [{"renewTime": "yesterday"}, {"holderIdentity": {}}])
def test_a_malformed_lease_is_refused(spec):
    with pytest.raises(InputError, match="lease: "):
        observe_held_lease({"spec": spec})
