"""Decisions about the tasks of a DAG: they run surely, perhaps, after a failure, or never.

Argo ends a task without a pod if its condition is false (`Skipped`), or if the tasks that it waits
for ended otherwise than it needs (`Omitted`). A task that surely ends so is not in the graph.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from kfp_placement_engine.exceptions import UnknownBranchError
from kfp_placement_engine.model.concurrency import Branch, exclude_each_other
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.readers.tree.choices import (
    Needs,
    ValueSet,
    all_of,
    branches_by_needs,
)
from kfp_placement_engine.readers.tree.expressions import ANY_PHASE, Scope
from kfp_placement_engine.readers.tree.given_names import GivenNames
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import Condition, Task
from kfp_placement_engine.readers.tree.values import known_list

_SUCCEEDED = frozenset({"Succeeded"})
_RAN = frozenset({"Succeeded", "Failed", "Error"})
_SKIPPED = frozenset({"Skipped"})
_OMITTED = frozenset({"Omitted"})

AFTER_SUCCESS: frozenset[str] = _SUCCEEDED
"""Ends of a task after which KFP runs those that wait for it."""

AFTER_SUCCESS_OR_SKIP: frozenset[str] = _SUCCEEDED | _SKIPPED
"""Ends of a task after which Argo runs those that wait for it, unless they say otherwise."""


@dataclass(frozen=True)
class Decision:
    """Knowledge before the run about whether a task runs.

    Attributes:
        phases: phases in which it may end.
        usual: phases in which it may end in a run in which nothing fails.
        conditions: conditions on which it depends in such a run, as text.
        branches: branches that it is in, within those around its DAG.
    """

    phases: frozenset[str] = _RAN
    usual: frozenset[str] = _SUCCEEDED
    conditions: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()

    @property
    def runs(self) -> bool:
        """True if the task may run."""
        return bool(self.phases & _RAN)

    @property
    def is_skipped(self) -> bool:
        """True if the task never runs because of its own condition."""
        return self.phases == _SKIPPED

    @property
    def after_failure(self) -> bool:
        """True if the task runs only in a run in which something fails."""
        return self.runs and "Succeeded" not in self.usual


RUNS = Decision()
"""Decision about a task without conditions."""

Decisions = Mapping[str, Decision]
"""Decisions about tasks, by name; a task that is not in it has no conditions."""


def phase_subject(task: str) -> str:
    """Return the subject of needs that the phase of a task is; "" = the run's."""
    return f"status of {task or 'the run'}"


def phase_values(phases: Iterable[str]) -> ValueSet:
    """Return phases as the values of a need."""
    return ValueSet(frozenset(f'"{phase}"' for phase in phases))


class BranchDecider:
    """Decides about the tasks of one run's DAGs, also by the branches that a user has chosen."""

    def __init__(
        self, options: ReadOptions, notices: NoticeCollector, usual_ends: frozenset[str]
    ) -> None:
        """Prepare for a run.

        Args:
            options: settings of the user.
            notices: collector of notices.
            usual_ends: phases of a task after which those that wait for it run by default.
        """
        self._chosen = GivenNames(options.branches, "branch", UnknownBranchError)
        self._any_chosen = bool(options.branches)
        self._notices = notices
        self._usual_ends = usual_ends

    def decide(self, tasks: Sequence[Task], scope: Scope, prefix: str) -> Decisions:
        """Return the decisions about the tasks of a DAG; empty if none of them has a condition.

        Args:
            tasks: tasks, each after those that it waits for.
            scope: values in the DAG.
            prefix: beginning of the names of its steps.

        Raises:
            UnknownBranchError: the user has chosen branches that exclude each other.
        """
        if not any(task.condition or task.trigger for task in tasks):
            return {}
        judged = _JudgedDag(tasks, scope, self._usual_ends, {})
        for task in tasks:
            if task.condition and judged.decisions[task.name].conditions:
                self._name_problem(prefix + task.name, task.condition, scope)
        branches = judged.branches(prefix)
        if self._any_chosen:
            given = self._given(tasks, judged.decisions, branches, prefix)
            judged = _JudgedDag(tasks, scope, self._usual_ends, given)
        return {
            name: replace(each, branches=branches[name]) if name in branches else each
            for name, each in judged.decisions.items()
        }

    def check_used(self) -> None:
        """Refuse choices of branches that the run does not have.

        Raises:
            UnknownBranchError: a name is that of no branch of the run, or of several.
        """
        self._chosen.check_used()

    def _name_problem(self, name: str, condition: Condition, scope: Scope) -> None:
        if problem := condition.problem(scope):
            message = f"its condition {condition.text!r:.80} {problem}; it is planned as if it ran"
            self._notices.add("unread-condition", message, task_of(name))

    def _given(
        self,
        tasks: Sequence[Task],
        decisions: Decisions,
        branches: Mapping[str, tuple[Branch, ...]],
        prefix: str,
    ) -> dict[str, bool]:
        """Return whether tasks are taken, as the user says; also those that taken ones exclude."""
        given: dict[str, bool] = {}
        for task in tasks:
            decision = decisions[task.name]
            if not (task.condition or decision.conditions or decision.after_failure):
                continue
            name = prefix + task.name
            taken = self._chosen.value(name, task_of(name), task.display_name)
            if taken is None:
                continue
            if decision.conditions or decision.after_failure:
                given[task.name] = taken
            elif taken is not decision.runs:
                message = (
                    f"its conditions are known to {'hold' if decision.runs else 'be false'}, so the"
                    " choice of this branch is not used; if a parameter decides, give the parameter"
                    " another value"
                )
                self._notices.add("branch-known", message, task_of(name))
        for taken_task in [name for name, taken in given.items() if taken]:
            mine = branches.get(taken_task, ())
            for other, theirs in branches.items():
                if exclude_each_other(mine, theirs) and given.setdefault(other, False):
                    raise UnknownBranchError(
                        f"branches {prefix + taken_task:.120} and {prefix + other:.120} exclude"
                        " each other, so that a run takes one of them at most; choose one"
                    )
        return given


class _JudgedDag:
    """Tasks of one DAG, judged in their order.

    Attributes:
        decisions: decisions about all tasks, without branches.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scope: Scope,
        usual_ends: frozenset[str],
        given: Mapping[str, bool],
    ) -> None:
        self.decisions: dict[str, Decision] = {}
        self._tasks = {task.name: task for task in tasks}
        self._usual_ends = usual_ends
        self._given = given
        self._in_any = replace(scope, phases=lambda task: self._decision(task).phases)
        self._in_usual = replace(scope, phases=lambda task: self._decision(task).usual)
        # Most tasks surely run, so that those which wait for them need no closer look.
        self._unsure: set[str] = set()
        for task in tasks:
            decision = self.decisions[task.name] = self._judged(task)
            if decision.usual != _SUCCEEDED:
                self._unsure.add(task.name)

    def branches(self, prefix: str) -> dict[str, tuple[Branch, ...]]:
        """Return the branches of tasks that run, by what they and those before them need."""
        own, explicit = self._needs("condition"), self._needs("trigger")
        if not own and not explicit:
            return {}
        watched = {
            subject
            for needs in (*own.values(), *explicit.values())
            for subject, values in needs.items()
            if not (values & phase_values(_SUCCEEDED)).values
        }
        starts: dict[str, Needs] = {}
        for name, task in self._tasks.items():
            parts = [explicit[name] if name in explicit else self._usual_needs(task, watched)]
            for other in task.depends_on:
                ends = self._ends_before(task, other, explicit.get(name))
                # A task that ended so has started, or even run.
                parts += [starts[other]] if "Omitted" not in ends else []
                parts += [own[other]] if other in own and ends <= _RAN else []
            starts[name] = all_of(parts)
        both = {name: all_of((starts[name], own.get(name, {}))) for name in self._tasks}
        running = {name for name, decision in self.decisions.items() if decision.runs}
        needed = {name: needs for name, needs in both.items() if needs and name in running}
        return branches_by_needs(needed, prefix)

    def _needs(self, kind: str) -> dict[str, Needs]:
        """Return what the conditions or triggers of tasks need."""
        conditions = {name: getattr(task, kind) for name, task in self._tasks.items()}
        return {name: each.needs(self._in_any) for name, each in conditions.items() if each}

    def _usual_needs(self, task: Task, watched: set[str]) -> Needs:
        return {
            phase_subject(other): phase_values(self._ends_before(task, other, None))
            for other in (task.depends_on if watched else ())
            if phase_subject(other) in watched
        }

    def _ends_before(self, task: Task, other: str, needs: Needs | None) -> frozenset[str]:
        """Return the ends of another task after which a task may start."""
        if self._tasks[other].exit_of:
            # An exit hook is awaited, however it ends.
            return ANY_PHASE
        if needs is None:
            return self._usual_ends | self._tasks[other].continues_after
        values = needs.get(phase_subject(other))
        if values is None or values.excluded:
            return ANY_PHASE
        return frozenset(value.strip('"') for value in values.values)

    def _judged(self, task: Task) -> Decision:
        if task.name in self._given:
            return RUNS if self._given[task.name] else Decision(_SKIPPED, _SKIPPED)
        condition = task.condition
        starts, usually_starts = (
            self._starts(task, self._in_any),
            self._starts(task, self._in_usual),
        )
        holds = usually_holds = True if condition is None else condition.holds(self._in_any)
        if holds is None and condition is not None:
            usually_holds = condition.holds(self._in_usual)
        if starts is False:
            return Decision(_OMITTED, _OMITTED)
        if holds is False or self._is_empty(task):
            return Decision(_SKIPPED, _SKIPPED)
        usual = _SUCCEEDED
        conditions: list[str] = []
        if usually_starts is not True:
            usual = _OMITTED | (usual if usually_starts is None else frozenset())
            conditions += self._conditions_before(task)
        if usually_holds is not True and condition is not None:
            usual = _SKIPPED | (usual if usually_holds is None else usual - _SUCCEEDED)
            conditions.append(condition.text)
        unsure = (_SKIPPED if holds is None else frozenset()) | (
            _OMITTED if starts is None else frozenset()
        )
        return Decision(_RAN | unsure, usual, tuple(dict.fromkeys(conditions)))

    def _starts(self, task: Task, scope: Scope) -> bool | None:
        """Return whether the tasks that a task waits for end so that it starts."""
        if task.trigger is not None:
            return task.trigger.holds(scope)
        if task.exit_of:
            # Argo runs it after each of them that has run.
            ends = [scope.phases(other) for other in task.exit_of]
            if any(phases <= _RAN for phases in ends):
                return True
            return None if any(phases & _RAN for phases in ends) else False
        sure: bool | None = True
        if scope is self._in_usual and self._unsure.isdisjoint(task.depends_on):
            return sure
        for other in task.depends_on:
            ends_before, phases = self._ends_before(task, other, None), scope.phases(other)
            if phases.isdisjoint(ends_before):
                return False
            sure = sure if phases <= ends_before else None
        return sure

    def _conditions_before(self, task: Task) -> list[str]:
        before = (*task.depends_on, *task.exit_of)
        texts = [text for other in before for text in self.decisions[other].conditions]
        return texts or ([task.trigger.text] if task.trigger is not None else [])

    def _is_empty(self, task: Task) -> bool:
        """Return whether a task is a loop that Argo skips because it has no items."""
        if task.loop is None or self._usual_ends <= _RAN:
            return False
        return known_list(task.loop.items.evaluate(self._in_any)) == []

    def _decision(self, task: str) -> Decision:
        return self.decisions.get(task, RUNS)
