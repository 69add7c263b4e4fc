"""Decisions about the tasks of a DAG: they run surely, perhaps, after a failure, or never.

Argo ends a task without a pod if its condition is false (`Skipped`), or if the tasks that it waits
for ended otherwise than it needs (`Omitted`). A task that surely ends so is not in the graph.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from kfp_placement_engine.model.concurrency import Branch
from kfp_placement_engine.readers.tree.choices import (
    EVERYTHING,
    NOTHING,
    Cases,
    Needs,
    ValueSet,
    all_of,
)
from kfp_placement_engine.readers.tree.expressions import (
    ANY_PHASE,
    Scope,
    phase_subject,
    succeeded_items,
)
from kfp_placement_engine.readers.tree.tasks import Task
from kfp_placement_engine.readers.tree.values import known_list

_SUCCEEDED = frozenset({"Succeeded"})
_RAN = frozenset({"Succeeded", "Failed", "Error"})
_SKIPPED = frozenset({"Skipped"})
_OMITTED = frozenset({"Omitted"})

AFTER_SUCCESS: frozenset[str] = _SUCCEEDED
"""Ends of a task after which KFP runs those that wait for it."""

AFTER_SUCCESS_OR_SKIP: frozenset[str] = _SUCCEEDED | _SKIPPED
"""Ends of a task after which Argo runs those that wait for it, unless they say otherwise."""


class Decision(NamedTuple):
    """Knowledge before the run about whether a task runs.

    Attributes:
        phases: phases in which it may end.
        usual: phases in which it may end in a run in which nothing fails.
        conditions: conditions on which it depends in such a run, as text.
        branches: branches that it is in, within those around its DAG.
        runs: whether the task may run.
        after_failure: whether it runs only in a run in which something fails.
    """

    phases: frozenset[str] = _RAN
    usual: frozenset[str] = _SUCCEEDED
    conditions: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    runs: bool = True
    after_failure: bool = False

    @property
    def is_skipped(self) -> bool:
        """True if the task never runs because of its own condition."""
        return not self.runs and self.phases != _OMITTED


RUNS = Decision()
"""Decision about a task without conditions."""

Decisions = Mapping[str, Decision]
"""Decisions about tasks, by name; a task that is not in it has no conditions."""


class JudgedDag:
    """Tasks of one DAG, judged in their order.

    Attributes:
        decisions: decisions about all tasks, without branches.
        scope: values in the DAG, with the possible ends of tasks.
    """

    def __init__(
        self,
        tasks: Sequence[Task],
        scope: Scope,
        usual_ends: frozenset[str],
        given: Mapping[str, bool],
        chosen: Needs,
    ) -> None:
        """Judge the tasks.

        Args:
            tasks: tasks, each after those that it waits for.
            scope: values in the DAG.
            usual_ends: phases of a task after which those that wait for it run by default.
            given: whether tasks run, as the user says, by name.
            chosen: values that the run makes, as the user's choices say.
        """
        self.decisions: dict[str, Decision] = {}
        self._own: dict[str, Cases] = {}
        self._triggers: dict[str, Cases] = {}
        self._tasks = {task.name: task for task in tasks}
        self._usual_ends = usual_ends
        self._given = given
        self._chosen_values = chosen
        in_any, in_usual = (
            {**chosen, phase_subject(""): ValueSet.of(ends)} for ends in (_RAN, _SUCCEEDED)
        )
        self.scope = scope._replace(possible=in_any)
        self._usual_scope = scope._replace(possible=in_usual)
        # Most tasks surely run, so that those which wait for them need no closer look.
        self._unsure: set[str] = set()
        for task in tasks:
            if task.condition is not None:
                self._own[task.name] = task.condition.cases(self.scope)
            if task.trigger is not None:
                self._triggers[task.name] = task.trigger.cases(self.scope)
            decision = self.decisions[task.name] = self._with_known_end(task)
            in_any[phase_subject(task.name)] = _values(decision.phases)
            in_usual[phase_subject(task.name)] = _values(decision.usual)
            if not decision.runs:
                in_any[succeeded_items(task.name)] = ValueSet.of([False])
            if decision.usual != _SUCCEEDED:
                self._unsure.add(task.name)

    def needs(self) -> dict[str, Needs]:
        """Return what each task that may run needs, also for those before it to end so."""
        own = {name: cases.met for name, cases in self._own.items()}
        explicit = {name: cases.met for name, cases in self._triggers.items()}
        watched = {
            subject
            for needs in (*own.values(), *explicit.values())
            for subject, values in needs.items()
            if not values.has("Succeeded")
        }
        named = {phase_subject(name): name for name in self._tasks}
        starts: dict[str, Needs] = {}
        whole: dict[str, Needs] = {}

        def implied(other: str, ends: frozenset[str]) -> Needs:
            """Return what another task needs to end so: it has run, or was skipped, or started."""
            if ends <= _RAN and not self._passes(self._tasks[other]):
                return whole.get(other, {})
            unmet = self._own.get(other, Cases()).unmet if ends == _SKIPPED else {}
            return {} if "Omitted" in ends else all_of((starts.get(other, {}), unmet))

        for name, task in self._tasks.items():
            start = explicit[name] if name in explicit else self._usual_needs(task, watched)
            before = [
                implied(other, self._ends_before(task, other, explicit.get(name)))
                for other in task.depends_on
            ]
            starts[name] = all_of((start, *before))
            mine = all_of((starts[name], own.get(name, {})))
            asked = [
                implied(named[subject], _phases(values))
                for subject, values in mine.items()
                if subject in named
            ]
            whole[name] = all_of((mine, *asked))
        # A branch has the name of its first task, which is one that people can choose.
        return {
            name: whole[name]
            for name in sorted(whole, key=lambda name: name not in own)
            if self.decisions[name].runs and (whole[name] or whole[name] is NOTHING)
        }

    def needs_if_skipped(self, name: str, chosen: Needs) -> Needs:
        """Return what a run needs in which a task is skipped, beside what is chosen."""
        condition = self._tasks[name].condition
        if condition is None:
            return {}
        scope = self.scope._replace(possible={**self.scope.possible, **chosen})
        return condition.cases(scope).unmet

    def _usual_needs(self, task: Task, watched: set[str]) -> Needs:
        return {
            phase_subject(other): _values(self._ends_before(task, other, None))
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
        return _phases(needs.get(phase_subject(other), EVERYTHING))

    def _with_known_end(self, task: Task) -> Decision:
        """Return the decision about a task, without ends that the user's choices rule out."""
        decision, chosen = self._judged(task), self._chosen_values.get(phase_subject(task.name))
        if chosen is None:
            return decision
        phases = decision.phases & _phases(chosen)
        return decision._replace(phases=phases, usual=decision.usual & phases or phases)

    def _judged(self, task: Task) -> Decision:
        skipped = _SUCCEEDED if self._passes(task) else _SKIPPED
        if task.name in self._given:
            return RUNS if self._given[task.name] else Decision(skipped, skipped, runs=False)
        condition = task.condition
        starts, usually_starts = self._starts(task), self._starts(task, in_usual=True)
        is_met = usually_met = True if condition is None else self._own[task.name].holds
        if is_met is None and condition is not None:
            usually_met = condition.cases(self._usual_scope).holds
        if starts is False:
            return Decision(_OMITTED, _OMITTED, runs=False)
        if is_met is False or self._is_empty(task):
            return Decision(skipped, skipped, runs=False)
        phases, usual = _RAN, _SUCCEEDED
        conditions: list[str] = []
        if usually_starts is not True:
            usual = _OMITTED | (usual if usually_starts is None else frozenset())
            conditions += self._conditions_before(task)
        if usually_met is not True and condition is not None:
            usual = skipped | (usual if usually_met is None else usual - _SUCCEEDED)
            conditions.append(condition.text)
        phases |= (skipped if is_met is None else phases) | (_OMITTED if starts is None else phases)
        after_failure = usually_starts is False or usually_met is False
        return Decision(
            phases, usual, tuple(dict.fromkeys(conditions)), after_failure=after_failure
        )

    def _starts(self, task: Task, *, in_usual: bool = False) -> bool | None:
        """Return whether the tasks that a task waits for end so that it starts."""
        if task.trigger is not None:
            cases = self._triggers[task.name]
            return (task.trigger.cases(self._usual_scope) if in_usual else cases).holds
        if task.exit_of:
            # Argo runs it after each of them that has run.
            ends = [self._ends(other, in_usual=in_usual) for other in task.exit_of]
            if any(phases <= _RAN for phases in ends):
                return True
            return None if any(phases & _RAN for phases in ends) else False
        sure: bool | None = True
        if in_usual and self._unsure.isdisjoint(task.depends_on):
            return sure
        for other in task.depends_on:
            ends_before, phases = (
                self._ends_before(task, other, None),
                self._ends(other, in_usual=in_usual),
            )
            if phases.isdisjoint(ends_before):
                return False
            sure = sure if phases <= ends_before else None
        return sure

    def _conditions_before(self, task: Task) -> list[str]:
        before = (*task.depends_on, *task.exit_of)
        texts = [text for other in before for text in self.decisions[other].conditions]
        return texts or ([task.trigger.text] if task.trigger is not None else [])

    def _passes(self, task: Task) -> bool:
        """Return whether a task is a loop that succeeds if all of its items are skipped."""
        is_loop_of_argo = task.loop is not None and not self._usual_ends <= _RAN
        return is_loop_of_argo and not self._is_empty(task)

    def _is_empty(self, task: Task) -> bool:
        """Return whether a task is a loop that Argo skips because it has no items."""
        if task.loop is None or self._usual_ends <= _RAN:
            return False
        return known_list(task.loop.items.evaluate(self.scope)) == []

    def _ends(self, task: str, *, in_usual: bool) -> frozenset[str]:
        decision = self.decisions.get(task, RUNS)
        return decision.usual if in_usual else decision.phases


@lru_cache
def _values(phases: frozenset[str]) -> ValueSet:
    return ValueSet.of(phases)


@lru_cache
def _phases(values: ValueSet) -> frozenset[str]:
    return frozenset(phase for phase in ANY_PHASE if values.has(phase))
