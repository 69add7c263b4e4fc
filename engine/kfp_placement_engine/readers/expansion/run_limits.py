"""Limits of a run, collected while its tasks are expanded: who holds which place."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from kfp_placement_engine.exceptions import RequestError
from kfp_placement_engine.model.concurrency import ConcurrencyLimit
from kfp_placement_engine.model.run_graph import Step
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.given_names import GivenNames
from kfp_placement_engine.readers.tree.leaves import Leaf, Lock
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.tasks import Dag, Names, TaskTree
from kfp_placement_engine.readers.tree.values import gapless, known_text


class _Open(NamedTuple):
    """A limit whose holders are not all known yet."""

    name: str
    most: int
    waits_with_place: bool
    holders: list[Names]


class RunLimits:
    """Collector of a run's limits.

    Argo counts the children of a template that are under way, also while they wait for a lock; the
    locks of a child are taken all at once (`checkParallelism`, `sync.Manager`). A limit that has
    places for all of its holders is left out.
    """

    def __init__(
        self, tree: TaskTree, semaphores: Mapping[str, int], notices: NoticeCollector
    ) -> None:
        """Begin without steps.

        Args:
            tree: run, with the limits that its objects state.
            semaphores: limits that a user gives, by the key of each semaphore: `ConfigMap/key`, or
                the key in a database.
            notices: collector of what cannot be used.
        """
        self._tree = tree
        self._given = GivenNames(semaphores, "semaphore", RequestError)
        self._has_unknown_names = False
        self._notices = notices
        self._steps: list[Step] = []
        self._children: list[_Open] = []
        self._locks: dict[str, _Open] = {}

    @property
    def step_count(self) -> int:
        """Number of steps until now."""
        return len(self._steps)

    def add_step(self, step: Step) -> None:
        """Add a step of the run."""
        self._steps.append(step)

    def open_children(self, dag: Dag) -> int:
        """Return the number of a limit for the children of a DAG; -1 = it has none."""
        if not dag.parallelism:
            return -1
        name = f"parallelism of template {dag.template:.80}"
        self._children.append(_Open(name, dag.parallelism, True, []))
        return len(self._children) - 1

    def limits_children(self, limit: int, count: int) -> bool:
        """Return whether at most this many children of a DAG are under way at once.

        Args:
            limit: number of the limit of the DAG; -1 = it has none.
            count: the number of children.
        """
        own = self._children[limit].most if limit >= 0 else 0
        return any(0 < most <= count for most in (own, self._tree.parallelism))

    def locks_of(self, locks: Iterable[Lock], scope: Scope, around: Names, task: str) -> Names:
        """Return the names of locks that are taken together, whose limits are known.

        Args:
            locks: locks of the task that is expanded.
            scope: the inputs of its body.
            around: locks that are held around it.
            task: name of the task, for messages; "" = the run.
        """
        names = (self._lock(lock, scope, around, task) for lock in locks)
        return tuple(filter(None, names))

    def close(self, first: int, child_of: int, body: Dag | Leaf, locks: Names) -> None:
        """Add what was expanded as a holder of its limits.

        Args:
            first: number of steps before it.
            child_of: limit of the children that it is one of; -1 = none.
            body: body of the task.
            locks: names of its locks.
        """
        steps = tuple(step.name for step in self._steps[first:])
        if not steps:
            return
        if child_of >= 0 and (isinstance(body, Dag) or self._steps[first].needs_pod):
            self._children[child_of].holders.append(steps)
        for name in locks:
            self._locks[name].holders.append(steps)

    def limits(self) -> tuple[ConcurrencyLimit, ...]:
        """Return the limits that have fewer places than holders."""
        limits = [*self._children, *self._locks.values()]
        if self._tree.parallelism:
            pods: list[Names] = [(step.name,) for step in self._steps if step.needs_pod]
            limits.append(_Open("parallelism of the Workflow", self._tree.parallelism, False, pods))
        return tuple(
            ConcurrencyLimit(each.name, each.most, tuple(each.holders), each.waits_with_place)
            for each in limits
            if len(each.holders) > each.most
        )

    def check_used(self) -> None:
        """Refuse limits of semaphores that the run does not have.

        Raises:
            RequestError: no semaphore has that name.
        """
        if not self._has_unknown_names:
            self._given.check_used()

    def leave_out(self, body: Dag | Leaf) -> None:
        """Note the locks of a body that never runs: their limits are of this run, but not used."""
        for lock in body.locks:
            self._most(lock, self._key(lock, Scope({})))

    def _key(self, lock: Lock, scope: Scope) -> str:
        """Return the key of a lock, or "" if it is known only at run time."""
        key = gapless(known_text(lock.name.evaluate(scope))) or ""
        self._has_unknown_names |= not key
        return key

    def _most(self, lock: Lock, key: str) -> int | None:
        """Return the places of a lock; None = they are not known."""
        if lock.kind == "mutex":
            return 1
        return self._given.value(key, key, "") or self._tree.semaphores.get(key)

    def _lock(self, lock: Lock, scope: Scope, around: Names, task: str) -> str:
        """Return the name of a lock, or "" if it cannot be used, which a notice says."""
        key = self._key(lock, scope)
        if not key:
            problem = f"the name of its {lock.kind} is known only at run time"
            self._notices.add("lock", f"{problem}; the plan is made without it", task)
            return ""
        name = f"{lock.kind} {key:.120}"
        most = self._most(lock, key)
        problem, code = self._problem(name, key, most, around)
        if most is None or problem:
            self._notices.add(code, problem, task)
            return ""
        if name not in self._locks:
            self._locks[name] = _Open(name, most, False, [])
            shared = f"takes {name}, which other runs of the namespace may hold, too"
            shared = shared if task else f"the run {shared}"
            self._notices.add("shared-lock", f"{shared}; their steps are not in the plan", task)
        return name

    def _problem(self, name: str, key: str, most: int | None, around: Names) -> tuple[str, str]:
        """Return why a lock cannot be used or is never free, and the code for it; "" = it is."""
        remedy = f"give it (--semaphore {key:.120}=N, semaphores in Python)"
        code = "lock-never-free"
        if most is None:
            config_map = key.rpartition("/")[0]
            if config_map in {each.rpartition("/")[0] for each in self._tree.semaphores}:
                return f"the ConfigMap of {name} has no such key: no step gets it; {remedy}", code
            where = "ConfigMap" if config_map else "database"
            problem = f"the limit of {name} is in a {where} that the plan does not know; {remedy}"
            return problem, "lock"
        if most < 1:
            return f"the limit of {name} is {most}: no step gets it; {remedy}", code
        if around.count(name) < most:
            return "", code
        problem = f"it never starts: it waits for {name}, which what calls it keeps meanwhile"
        return f"{problem}; take the lock in one of them only", code
