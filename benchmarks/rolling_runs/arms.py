"""The ways to run a series that are compared."""

import math
from dataclasses import dataclass, replace
from itertools import product

from benchmarks.rolling_runs.rules import GateRule, kept_room, ready_and_fits, strict
from kfp_placement_engine.planning.starts.node_queue import steps_to_start
from kfp_placement_engine.plans.assumptions import Assumptions

GATE_DEADLINE_SECONDS = 60.0
"""Gate deadline of a PlacementPolicy by default."""


@dataclass(frozen=True)
class Arm:
    """One way to run a series.

    Attributes:
        name: name for people and for `--arms`.
        rule: rule of gates; None = there are no plans and no gates (kube-default).
        replans: whether it replans on drift as well, not only when a run arrives.
        gate_deadline_seconds: time after which a gate comes off.
        knows_times: plans know the true run times.
        overrun_share: share of its time that an overrunning step is planned to need still.
        rule_name: name of the rule in the tables; "" = the name.
    """

    name: str
    rule: GateRule | None
    replans: bool = False
    gate_deadline_seconds: float = math.inf
    knows_times: bool = False
    overrun_share: float = Assumptions().overrun_share
    rule_name: str = ""

    @property
    def has_deadline(self) -> bool:
        """True if gates of plans come off after a while."""
        return self.rule is not None and self.gate_deadline_seconds < math.inf


KUBE_DEFAULT = Arm("kube-default", None, gate_deadline_seconds=0.0)
ORACLE = Arm("oracle", kept_room, knows_times=True)

_RULES = (
    Arm("strict", strict),
    Arm("until now", kept_room, overrun_share=0.1),
    Arm("slack", steps_to_start),
    Arm("ready and fits", ready_and_fits),
)


def all_arms() -> list[Arm]:
    """Return the default scheduler, and every rule with and without replanning and deadline."""
    arms = [KUBE_DEFAULT]
    for replans, has_deadline in product((False, True), repeat=2):
        for arm in _RULES:
            words = [arm.name, *(["drift"] * replans), *(["deadline"] * has_deadline)]
            given = replace(arm, name=", ".join(words), rule_name=arm.name, replans=replans)
            if has_deadline:
                given = replace(given, gate_deadline_seconds=GATE_DEADLINE_SECONDS)
            arms.append(given)
    return arms
