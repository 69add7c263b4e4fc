"""Decision of the built-in queues at one moment: which runs start, and which stop for another."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kfp_placement_controller.queueing.backend import Stop
from kfp_placement_controller.queueing.builtin.admission import waiting_verdicts
from kfp_placement_controller.queueing.builtin.preemption import first_preemption
from kfp_placement_controller.queueing.runs import AdmittedRun, Rules, WaitingRun, rules_in_use
from kfp_placement_controller.queueing.verdicts import TAKEN_BY_OTHERS, Verdict
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.units.resources import Resources


@dataclass(frozen=True)
class Decision:
    """Decision about all waiting and admitted runs.

    Attributes:
        verdicts: verdicts on the waiting runs, in the order in which these were tried.
        held: runs that still wait.
        taking: runs that take room, those that start now included.
        stops: runs that must stop, and why.
    """

    verdicts: Sequence[Verdict]
    held: Sequence[WaitingRun]
    taking: Sequence[AdmittedRun]
    stops: Mapping[RunKey, Stop]

    @classmethod
    def of(
        cls,
        waiting: Iterable[WaitingRun],
        admitted: Sequence[AdmittedRun],
        uids: Mapping[RunKey, str],
        rules: Rules,
        nodes: Sequence[Resources],
        now: datetime,
    ) -> "Decision":
        """Decide.

        Args:
            waiting: runs that are held.
            admitted: runs that take room.
            uids: uids of the waiting runs.
            rules: rules of the queues.
            nodes: the cluster.
            now: the time.
        """
        runs = {run.key: run for run in waiting}
        rules = rules_in_use(rules, runs.values(), admitted)
        verdicts = waiting_verdicts(runs.values(), admitted, rules, nodes, now)
        held = [each for each in verdicts if not each.is_admitted]
        # Runs that start only now have no room to give back yet.
        new = [
            replace(runs[each.key].as_admitted(now), is_fixed=True)
            for each in verdicts
            if each.is_admitted
        ]
        # A run for which room is kept counts as if it were admitted.
        kept = [
            replace(runs[each.key].as_admitted(now), is_fixed=True)
            for each in held
            if each.keeps_room
        ]
        stuck = [runs[each.key] for each in held if each.missing[0].rule in TAKEN_BY_OTHERS]
        taking = [*admitted, *new]
        stops = first_preemption(stuck, taking, kept, uids, rules, nodes)
        return cls(verdicts, [runs[each.key] for each in held], taking, stops)
