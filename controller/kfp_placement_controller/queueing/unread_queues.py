"""RunQueues of which nobody knows what they allow: their runs wait until somebody corrects them."""

from collections import Counter
from datetime import datetime

from kfp_placement_controller.queueing.backend import Decisions
from kfp_placement_controller.queueing.situation import Situation
from kfp_placement_controller.queueing.verdicts import Lack, Rule, Verdict


class UnreadQueues:
    """Admits nobody, and says so."""

    def decide(self, situation: Situation, now: datetime) -> Decisions:
        """Decide about the runs of these queues; those that run go on."""
        runs = sorted(
            situation.in_unread_queues, key=lambda each: (each.run.submitted_at, each.key)
        )
        waiting = Counter(map(situation.queue_of, runs))
        left = waiting.copy()
        verdicts = {}
        for known in runs:
            queue = situation.queue_of(known)
            position = waiting[queue] - left[queue] + 1
            left[queue] -= 1
            missing = (Lack(Rule.QUEUE, reason="see its condition Valid"),)
            verdicts[known.key] = Verdict(known.key, missing, position, waiting[queue])
        return Decisions(verdicts=verdicts)
