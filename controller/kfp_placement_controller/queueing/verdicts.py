"""Verdict on a waiting run: its position in the queue and what is missing, as data and as text."""

from collections import Counter
from collections.abc import Container, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kfp_placement_engine.contract.run_request import RequestReason
from kfp_placement_engine.model.keys import QueueKey, RunKey
from kfp_placement_engine.units.quantities import format_resource


class Rule(StrEnum):
    """Rule that keeps a run waiting.

    `STEP`: no node can take one of its steps. `QUOTA_SIZE`: it needs more than the whole quota.
    `QUOTA`: together with the admitted runs of its queue it exceeds the quota. `NO_NODE`: no node
    has the resource. `CAPACITY`: with all admitted runs it needs more than may be promised.
    `GANG_SIZE`: pods that must run together do not fit the empty cluster. `GANGS`: they do not fit
    beside those of other runs. `KUEUE`: Kueue has not admitted it.
    """

    STEP = "step"
    QUOTA_SIZE = "quota-size"
    QUOTA = "quota"
    NO_NODE = "no-node"
    CAPACITY = "capacity"
    GANG_SIZE = "gang-size"
    GANGS = "gangs"
    KUEUE = "kueue"


TAKEN_BY_OTHERS = frozenset({Rule.QUOTA, Rule.CAPACITY, Rule.GANGS})
"""Rules that keep a run waiting only while other runs take what it needs."""

RUNS = "runs"
"""Name of the number of runs, among the resources of a quota."""


@dataclass(frozen=True, slots=True)
class Lack:
    """Lack of one resource by a waiting run.

    Attributes:
        rule: rule that keeps the run waiting.
        resource: name of the resource; `RUNS` for the number of runs, `pods` for gangs.
        amount: missing amount, in canonical units.
        reason: explanation by the planner (`STEP`) or by Kueue, or "".
    """

    rule: Rule
    resource: str = ""
    amount: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about a waiting run.

    Attributes:
        key: key of the run.
        missing: lacks by the first rule that keeps it waiting; () if it is admitted.
        position: position among the runs of its queue that still wait, from 1; 0 if it is admitted.
        waiting: number of runs of its queue that still wait.
        keeps_room: whether room of the cluster is kept for it, which runs behind it cannot have.
    """

    key: RunKey
    missing: tuple[Lack, ...] = ()
    position: int = 0
    waiting: int = 0
    keeps_room: bool = False

    @property
    def is_admitted(self) -> bool:
        """Return whether it may run."""
        return not self.missing


class TriedRun(NamedTuple):
    """A waiting run, with the lacks that keep it waiting.

    Attributes:
        key: key of the run.
        queue: RunQueue that decides about it.
        missing: lacks by the first rule that keeps it waiting; () if it is admitted.
    """

    key: RunKey
    queue: QueueKey
    missing: tuple[Lack, ...]


def verdicts_of(runs: Sequence[TriedRun], keeping: Container[RunKey] = ()) -> list[Verdict]:
    """Return the verdicts on runs, each with its position in its queue.

    Args:
        runs: runs in order.
        keeping: runs that room is kept for.
    """
    left = Counter(run.queue for run in runs if run.missing)
    positions: Counter[QueueKey] = Counter()
    verdicts = []
    for key, queue, missing in runs:
        if not missing:
            verdicts.append(Verdict(key))
            continue
        positions[queue] += 1
        verdicts.append(Verdict(key, missing, positions[queue], left[queue], key in keeping))
    return verdicts


class RuleWords(NamedTuple):
    """Texts of a rule.

    Attributes:
        reason: reason of the condition of a run that the rule keeps waiting.
        sentence: sentence about such a run, without amounts: these change all the time.
        phrase: phrase about such a run, with a place for the missing amounts.
    """

    reason: RequestReason
    sentence: str
    phrase: str


RULE_WORDS = {
    Rule.STEP: RuleWords(
        RequestReason.NO_MATCHING_NODE, "a step fits no node", "has a step that fits no node"
    ),
    Rule.QUOTA_SIZE: RuleWords(
        RequestReason.WAITING_FOR_QUOTA,
        "it needs more than the whole quota",
        "needs {} more than the whole quota, and waits until that is raised",
    ),
    Rule.QUOTA: RuleWords(
        RequestReason.WAITING_FOR_QUOTA,
        "the quota of its queue is used up",
        "lacks {} of the quota",
    ),
    Rule.NO_NODE: RuleWords(
        RequestReason.NO_MATCHING_NODE,
        "no node has a resource that it needs",
        "needs {}, which no node has",
    ),
    Rule.CAPACITY: RuleWords(
        RequestReason.WAITING_FOR_ROOM, "the cluster has no room for it", "lacks {} of the cluster"
    ),
    Rule.GANG_SIZE: RuleWords(
        RequestReason.NO_MATCHING_NODE,
        "pods that must run together do not fit the empty cluster",
        "has pods that must run together, and the empty cluster has no room for {}",
    ),
    Rule.GANGS: RuleWords(
        RequestReason.WAITING_FOR_ROOM,
        "pods that must run together find no room",
        "has pods that must run together, and lacks room for {}",
    ),
    Rule.KUEUE: RuleWords(
        RequestReason.WAITING_FOR_QUOTA, "Kueue has not admitted it", "waits for Kueue"
    ),
}
"""Texts of each rule."""


def verdict_text(verdict: Verdict) -> str:
    """Return the verdict as text, such as "3rd of 7, lacks 8 cpu of the quota"."""
    if verdict.is_admitted:
        return "admitted"
    return f"{_ordinal(verdict.position)} of {verdict.waiting}, {lacks_text(verdict.missing)}"


def lacks_text(lacks: Sequence[Lack]) -> str:
    """Return lacks by one rule as text, such as "lacks 8 cpu of the quota"."""
    first = lacks[0]
    amounts = [_amount(each) for each in lacks]
    listed = " and ".join([", ".join(amounts[:-1]), amounts[-1]] if amounts[1:] else amounts)
    text = RULE_WORDS[first.rule].phrase.format(listed)
    return f"{text}: {first.reason}" if first.reason else text


def _amount(lack: Lack) -> str:
    name = lack.resource
    if name in (RUNS, "pods") and lack.amount == 1:
        name = name.removesuffix("s")
    return f"{format_resource(lack.resource, lack.amount)} {name}"


def _ordinal(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return f"{number}th"
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th') }"
