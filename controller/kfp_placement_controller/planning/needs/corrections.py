"""Corrections of RunRequests: what each should say, compared with what is stored."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kfp_placement_controller.observed.run_requests import ObservedRequest
from kfp_placement_controller.pauses import lasts
from kfp_placement_controller.planning.actions import DeleteRequest, WriteRequest
from kfp_placement_controller.planning.needs.run_needs import RunNeed
from kfp_placement_engine.contract.run_request import RunDemand, RunRequestSpec
from kfp_placement_engine.model.keys import RunKey

NO_NODES = "the cluster has no nodes"

_PART_OF_DEADLINE = 4
"""Part of a queue's `holdDeadline` after which it hears of a run whose turn has not come."""

IN_LINE = "what it needs is worked out in its turn: the planner has many runs to plan"


def correction(
    need: RunNeed, stored: ObservedRequest | None, wanted: RunRequestSpec | None
) -> WriteRequest | DeleteRequest | None:
    """Return the action that corrects the RunRequest of a run; None = it is correct.

    Args:
        need: need of the run.
        stored: RunRequest of its name as stored; None = there is none.
        wanted: spec that it should have; None = nothing new.
    """
    observed = need.observed
    if stored is not None and observed.uid not in stored.owner_uids:
        # It belongs to an earlier run of this name, or to no run. Finalizers may keep it.
        return None if stored.is_going else DeleteRequest(observed.key, stored.uid)
    if wanted is None or (stored is not None and _same(wanted, stored.spec)):
        return None
    return WriteRequest(observed.key, observed.owner, wanted, stored.version if stored else "")


def wanted_spec(
    need: RunNeed, stored: ObservedRequest | None, makespan_seconds: float | None
) -> RunRequestSpec | None:
    """Return what the RunRequest of a run should say that has been planned alone, or has ended.

    Args:
        need: need of the run.
        stored: RunRequest of its name as stored; None = there is none.
        makespan_seconds: makespan of the plan in force; None = there is no plan.
    """
    before = None if stored is None else stored.spec
    end = need.observed.state.end
    if end is not None:
        changes = {"end": str(end), "demand": RunDemand(), "finishes_at": None}
        return None if before is None else before.model_copy(update=changes)
    spec = need.spec(makespan_seconds)
    if spec.demand is None and not spec.problem:
        return spec.model_copy(update={"unschedulable": NO_NODES})
    if spec.demand is None and before is not None:
        # A run gives nothing back by becoming unreadable.
        return spec.model_copy(update={"demand": before.demand})
    return spec


@dataclass
class RunsInLine:
    """Runs whose turn to be planned has not come yet."""

    _since: dict[RunKey, float] = field(default_factory=dict)

    def late(
        self, keys: Iterable[RunKey], deadlines: Mapping[str, float], monotonic_seconds: float
    ) -> Iterator[RunKey]:
        """Yield the runs that their queues must hear of, as they would let them begin.

        Args:
            keys: all runs in line.
            deadlines: `holdDeadline` of queues, by namespace.
            monotonic_seconds: the present moment.
        """
        self._since = {key: self._since.get(key, monotonic_seconds) for key in keys}
        for key, since in self._since.items():
            patience_seconds = deadlines[key.namespace] / _PART_OF_DEADLINE
            if not lasts(patience_seconds, since, monotonic_seconds):
                yield key


def spec_in_line(need: RunNeed) -> RunRequestSpec:
    """Return what the RunRequest of a run says whose turn to be planned has not come for long.

    It has neither a demand nor a problem: by it the queue sees that the planner knows the run.
    """
    return need.spec(None).model_copy(update={"notes": (IN_LINE,)})


def _same(wanted: RunRequestSpec, stored: RunRequestSpec | None) -> bool:
    """Return whether two specs look the same in the cluster; False if none is stored."""
    if stored is None:
        return False
    return wanted.model_dump(mode="json") == stored.model_dump(mode="json")
