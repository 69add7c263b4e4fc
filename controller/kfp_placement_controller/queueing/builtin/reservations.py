"""Reservations of admitted runs, as sums, and what one more run lacks beside them."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from kfp_placement_controller.queueing.builtin.gang_room import GangRoom
from kfp_placement_controller.queueing.runs import (
    NO_RULES,
    AdmittedRun,
    QueueRules,
    Rules,
    WaitingRun,
)
from kfp_placement_controller.queueing.verdicts import RUNS, Lack, Rule
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.model.demand import PodGroup
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_engine.units.resources import (
    MAX_SUM,
    Resources,
    add_to,
    least,
    minus,
    subtract_from,
    total_of,
    without_zeros,
)


class _Cluster:
    """The cluster as queues with one `capacity` see it."""

    def __init__(
        self, nodes: Sequence[Resources], capacity: Resources, gangs: Sequence[PodGroup]
    ) -> None:
        rooms = [*nodes]
        there = self._capacity = total_of(rooms)
        if capacity:
            # Nobody knows the nodes that a pool will add: what they bring is taken for one node,
            # and they have room for any number of pods.
            self._capacity = {**there, "pods": MAX_SUM, **capacity}
            rooms.append(minus(self._capacity, there))
        self._empty = GangRoom.of(rooms, gangs)
        self._taken = Counter[str]()
        self._of_namespace = defaultdict[str, Counter[str]](Counter)
        self._not_in_use = defaultdict[str, Counter[str]](Counter)

    def add(self, run: WaitingRun | AdmittedRun, sign: int) -> None:
        """Add a demand; more than there is counts as all there is: alone, such a run may start."""
        change = add_to if sign > 0 else subtract_from
        counted = self._counted(run.demand.peak)
        in_use = least(self._counted(_in_use(run)), counted)
        change(self._of_namespace[run.queue.namespace], counted)
        change(self._taken, in_use)
        change(self._not_in_use[run.queue.namespace], minus(counted, in_use))

    def above(self, namespace: str, overcommit: float, part: float, more: Resources) -> float:
        """Return what a namespace takes above its part of what may be promised; 0 = nothing.

        It is the largest ratio, over resources, to what may be promised of the cluster.

        Args:
            namespace: the namespace.
            overcommit: overcommit by which it may be promised.
            part: part that is the namespace's own.
            more: resources that it would take besides.
        """
        taken, added = self._of_namespace[namespace], self._counted(more)
        above = [
            (taken[name] + added.get(name, 0)) / (there * overcommit) - part
            for name, there in self._capacity.items()
            if there > 0
        ]
        return max(0.0, *above, 0.0)

    def _counted(self, amounts: Resources) -> dict[str, int]:
        return {name: min(each, self._capacity.get(name, 0)) for name, each in amounts.items()}

    def pack(self, gangs: Sequence[PodGroup]) -> None:
        """Pack the gangs of all admitted runs at once, so that the largest pods come first."""
        self._gangs = self._empty.emptied()
        # What finds no room, since a node was lost or somebody let the run begin, takes all room
        # that it could use; what is left is of no use to it.
        self._gangs.take(gangs)

    def pack_more(self, gangs: Sequence[PodGroup]) -> None:
        """Pack the gangs of one more run beside them."""
        if gangs:
            self._gangs.take(gangs)

    def lacks(self, run: WaitingRun, overcommit: float) -> tuple[Lack, ...]:
        demand, own = run.demand, self._not_in_use[run.queue.namespace]
        peak = without_zeros(demand.peak)
        if there_is_none := [name for name in peak if self._capacity.get(name, 0) <= 0]:
            return tuple(Lack(Rule.NO_NODE, name, peak[name]) for name in there_is_none)
        if pods := self._empty.lacks(demand.gangs):
            return (Lack(Rule.GANG_SIZE, "pods", pods),)
        missing = []
        for name, amount in peak.items():
            limit = int(self._capacity[name] * overcommit)
            counted = min(amount, self._capacity[name], limit)
            taken = self._taken[name] + own[name]
            if (over := taken + counted - limit) > 0:
                missing.append(Lack(Rule.CAPACITY, name, over))
        if not missing and demand.gangs and (pods := self._gangs.lacks(demand.gangs)):
            missing.append(Lack(Rule.GANGS, "pods", pods))
        return tuple(missing)


class Reservations:
    """Reservations of admitted runs, by queue and in the cluster.

    What a run does not use counts for its own queue alone. So a queue cannot be given more than its
    rules allow while its runs sleep, and all of them may wake.
    """

    def __init__(
        self,
        admitted: Iterable[AdmittedRun],
        rules: Rules,
        nodes: Sequence[Resources],
        waiting: Iterable[WaitingRun],
    ) -> None:
        """Add up the reservations of admitted runs, whether within all limits or not.

        Args:
            admitted: admitted runs.
            rules: rules of the queues.
            nodes: room of each node for runs, `pods` included.
            waiting: runs that will be asked about.
        """
        self._rules = rules
        self._by_queue = defaultdict[QueueKey, Counter[str]](Counter)
        self._admitted = {run.key: run for run in admitted}
        runs: list[WaitingRun | AdmittedRun] = [*self._admitted.values(), *waiting]
        gangs = [group for run in runs for group in _gangs(run)]
        self._weights = _weights(rules)
        self._weight = math.fsum(self._weights.values())
        capacities = {_named(each.capacity) for each in (NO_RULES, *rules.values())}
        self._clusters = {each: _Cluster(nodes, dict(each), gangs) for each in capacities}
        for run in self._admitted.values():
            self._count(run, 1)
        self._is_packed = False
        self._pack()

    def take(self, run: WaitingRun) -> None:
        """Reserve what one more run needs."""
        self._count(run, 1)
        for cluster in self._clusters.values():
            cluster.pack_more(run.demand.gangs)

    def take_quota(self, run: WaitingRun) -> None:
        """Reserve what one more run needs of the quota of its queue alone."""
        self._count_in_queue(run, 1)

    def reserve(self, run: AdmittedRun) -> None:
        """Count a run as admitted: one that was released, or that is let run."""
        self._admitted[run.key] = run
        self._count(run, 1)
        self._is_packed &= not _gangs(run)

    def release(self, run: AdmittedRun) -> None:
        """Count an admitted run no longer."""
        del self._admitted[run.key]
        self._count(run, -1)
        self._is_packed &= not _gangs(run)

    def share(self, queue: QueueKey, more: Resources | None = None) -> float:
        """Return the share of the cluster that a queue's namespace has above its part, by weight.

        Args:
            queue: key of the queue; its `overcommit` and `capacity` count.
            more: resources that it would take besides.
        """
        rules = self._rules.get(queue, NO_RULES)
        if not rules.weight:
            return 0.0
        cluster = self._clusters[_named(rules.capacity)]
        part, weight = self._part(queue), self._weight_of(queue)
        return cluster.above(queue.namespace, rules.overcommit, part, more or {}) / weight

    def lacks(self, run: WaitingRun) -> tuple[Lack, ...]:
        """Return what the run lacks by the first rule that keeps it waiting; () if it may start."""
        if run.unschedulable:
            return (Lack(Rule.STEP, reason=run.unschedulable),)
        if run.demand.gangs and not self._is_packed:
            self._pack()
        rules = self._rules.get(run.queue, NO_RULES)
        needs = {**run.demand.of_quota, RUNS: 1}
        quota = {**rules.quota, **({} if rules.max_runs is None else {RUNS: rules.max_runs})}
        return (
            _over(Rule.QUOTA_SIZE, needs, {}, quota)
            or _over(Rule.QUOTA, needs, self._by_queue.get(run.queue, {}), quota)
            or self._clusters[_named(rules.capacity)].lacks(run, self._overcommit(run, rules))
        )

    def _weight_of(self, queue: QueueKey) -> float:
        return self._weights.get(queue.namespace) or NO_RULES.weight

    def _part(self, queue: QueueKey) -> float:
        weight = self._weight_of(queue)
        return weight / max(self._weight, weight)

    def _overcommit(self, run: WaitingRun, rules: QueueRules) -> float:
        """Return the overcommit for a run; of what is promised beyond the cluster, little is lent.

        Pods have room only once. If one queue could take all that may be promised, the pods of
        others would find no node when these take their parts. So a namespace is lent half of it for
        the run that brings it above its part, which may be larger than that part, and then none.
        """
        if self._part(run.queue) == 1 or not self.share(run.queue, run.demand.peak):
            return rules.overcommit
        lent = 1.0 if self.share(run.queue) else (1 + rules.overcommit) / 2
        return min(rules.overcommit, lent)

    def _count(self, run: WaitingRun | AdmittedRun, sign: int) -> None:
        self._count_in_queue(run, sign)
        for cluster in self._clusters.values():
            cluster.add(run, sign)

    def _count_in_queue(self, run: WaitingRun | AdmittedRun, sign: int) -> None:
        change = add_to if sign > 0 else subtract_from
        change(self._by_queue[run.queue], {**run.demand.of_quota, RUNS: 1})
        if isinstance(run, AdmittedRun) and run.beyond:
            change(self._by_queue[run.queue], run.beyond)

    def _pack(self) -> None:
        gangs = [each for run in self._admitted.values() for each in _gangs(run)]
        for cluster in self._clusters.values():
            cluster.pack(gangs)
        self._is_packed = True


def _weights(rules: Rules) -> dict[str, float]:
    """Return the weight of each namespace: that of its queue `default`.

    However many queues a namespace has, it has one share. Where another backend has that queue, the
    largest weight of the others counts.
    """
    weights: dict[str, float] = {}
    for queue, each in rules.items():
        weights[queue.namespace] = max(weights.get(queue.namespace, 0.0), each.weight)
    defaults = {queue: each for queue, each in rules.items() if queue.name == DEFAULT_QUEUE}
    return weights | {
        queue.namespace: each.weight for queue, each in defaults.items() if each.weight
    }


def _in_use(run: WaitingRun | AdmittedRun) -> Resources:
    part = run.in_use if isinstance(run, AdmittedRun) else None
    return run.demand.peak if part is None else part


def _gangs(run: WaitingRun | AdmittedRun) -> Sequence[PodGroup]:
    is_all = not isinstance(run, AdmittedRun) or run.in_use is None
    return run.demand.gangs if is_all else ()


def _named(capacity: Resources | None) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(capacity.items())) if capacity else ()


def _over(rule: Rule, needs: Resources, taken: Resources, quota: Resources) -> tuple[Lack, ...]:
    """Resources of the quota of which the run needs more than is left."""
    return tuple(
        Lack(rule, name, over)
        for name, most in quota.items()
        if needs.get(name, 0) > 0 and (over := taken.get(name, 0) + needs[name] - most) > 0
    )
