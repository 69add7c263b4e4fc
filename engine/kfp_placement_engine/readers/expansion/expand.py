"""The expansion of a task tree to a `RunGraph`: loops become steps, DAGs become dependencies.

Names, dependencies, conditions, exit tasks, claims and groups follow the same rules for every
source. A DAG ends when its sinks end: the tasks that no other task of the DAG waits for.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.history import text_digest
from kfp_placement_engine.model.notices import UNLIMITED_LOOP
from kfp_placement_engine.model.run_graph import GroupKind, RunGraph
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.readers.expansion.loop_widths import LoopWidths
from kfp_placement_engine.readers.expansion.results import (
    AfterFailureResult,
    DagResult,
    LeafResult,
    LoopResult,
    NoResult,
    TaskResult,
)
from kfp_placement_engine.readers.expansion.run_builder import Position, RunBuilder
from kfp_placement_engine.readers.tree.branch_decider import BranchDecider
from kfp_placement_engine.readers.tree.decisions import (
    AFTER_SUCCESS,
    AFTER_SUCCESS_OR_SKIP,
    RUNS,
    Decision,
)
from kfp_placement_engine.readers.tree.expressions import (
    Composed,
    LoopItem,
    Scope,
    Selected,
    within,
)
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.task_order import check_size, ordered_tasks
from kfp_placement_engine.readers.tree.tasks import (
    Dag,
    Drivers,
    Loop,
    Names,
    OutputKind,
    Task,
    TaskTree,
)
from kfp_placement_engine.readers.tree.values import (
    UNKNOWN,
    KnownValue,
    Missing,
    Value,
    item_value,
    known_list,
    known_text,
)

_MOST_CHARACTERS = 2_000
_MOST_GROUPS = 200
"""Limits of a step's name, since the names of all groups around it are looked up."""


def expand(tree: TaskTree, options: ReadOptions) -> RunGraph:
    """Expand a task tree to the graph of its run.

    Raises:
        InputError: a dependency is missing or circular, a name occurs twice, or a value is
            malformed.
        LimitError: the run has more steps or dependencies than `options` allows, or longer names
            of steps than can be looked up in time.
    """
    check_size(tree.root, options)
    return _Expander(tree, options).run()


def _check_name(name: str) -> None:
    """Refuse a name that is too long, or of too many parts."""
    if len(name) > _MOST_CHARACTERS:
        problem = f"has {len(name)} characters; at most {_MOST_CHARACTERS} are read"
    elif (parts := name.count(".") + name.count("[")) > _MOST_GROUPS:
        problem = f"is in {parts} groups, by its dots and brackets; at most {_MOST_GROUPS} are read"
    else:
        return
    raise LimitError(f"step {name:.80} {problem}")


class _Expander:
    def __init__(self, tree: TaskTree, options: ReadOptions) -> None:
        self._tree = tree
        notices = NoticeCollector(tree.notices)
        self._run = RunBuilder(tree, options, notices)
        self._limits = self._run.limits
        self._widths = LoopWidths(options, notices)
        self._notices = notices
        has_drivers = tree.drivers is not Drivers.NONE
        usual_ends = AFTER_SUCCESS if has_drivers else AFTER_SUCCESS_OR_SKIP
        self._decider = BranchDecider(options, notices, usual_ends)

    def run(self) -> RunGraph:
        tree = self._tree
        missing = {name: Missing(name) for name in tree.missing_arguments}
        inputs = missing | _known_values(tree.root.defaults) | _known_values(tree.arguments)
        locks = self._limits.locks_of(tree.locks, Scope(), (), "")
        locks += self._limits.locks_of(tree.root.locks, Scope(inputs), locks, "")
        self._dag(tree.root, Position(locks=locks), inputs, {})
        self._limits.close(0, -1, tree.root, locks)
        self._widths.check_used()
        self._decider.check_used()
        self._limits.check_used()
        return self._run.graph()

    def _dag(
        self,
        dag: Dag,
        position: Position,
        inputs: Mapping[str, Value],
        artifacts: Mapping[str, Value],
    ) -> DagResult:
        results: dict[str, TaskResult] = {}

        def output(kind: OutputKind, task: str, key: str) -> Value:
            return results[task].output(kind, key) if task in results else UNKNOWN

        scope = Scope(inputs, partial(output, "parameters"))
        artifact_scope = Scope(artifacts, partial(output, "artifacts"))
        tasks = ordered_tasks(dag)
        child_of = self._limits.open_children(dag)
        decisions = self._decider.decide(tasks, scope, position.prefix)
        # In a run without failures, nothing waits for a task that runs after a failure.
        late: dict[str, Names] = {}
        for task in tasks:
            decision = decisions.get(task.name, RUNS)
            waits = task.depends_on + task.exit_of
            ends = [results[name].sinks for name in waits]
            if decision.after_failure and late:
                ends += [late[name] for name in waits if name in late]
            upstream = _union(ends) if waits else position.upstream
            here = position._replace(
                upstream=upstream,
                conditions=position.conditions + decision.conditions,
                branches=position.branches + decision.branches,
                inside=position.inside + _author_names(task),
                after_failure=position.after_failure or decision.after_failure,
                exit_task=position.exit_task or bool(task.exit_of),
                child_of=child_of,
            )
            if not decision.runs:
                result = self._dead(task, here, decision)
            elif (loop := _hooked_loop(task, results)) is not None:
                result = self._hooks(task, here, loop, scope, artifact_scope)
            else:
                result = self._task(task, here, scope, artifact_scope)
            if decision.after_failure:
                late[task.name] = result.sinks
                result = AfterFailureResult(result, upstream)
            results[task.name] = result
        return DagResult(dag, results, _sinks(dag, results, position.upstream))

    def _dead(self, task: Task, position: Position, decision: Decision) -> TaskResult:
        """Expand a task that never runs: KFP evaluates its condition in the driver of its group."""
        self._run.leave_out(task, position.prefix)
        if decision.is_skipped and isinstance(task.body, Dag):
            self._run.add_group(position.prefix + task.name, GroupKind.DAG, position)
        return NoResult(position.upstream)

    def _task(self, task: Task, position: Position, scope: Scope, artifacts: Scope) -> TaskResult:
        if task.body is None:
            return NoResult(position.upstream)
        lost = [name for name in task.required_inputs if name not in scope.inputs]
        for name in lost:
            code, message = task.lost_input(name)
            self._notices.add(code, message, task_of(position.prefix + task.name))
        if lost:
            # Nobody will ever know the values, so they do not count as known at run time.
            nothing = dict.fromkeys(lost, KnownValue(None))
            scope = scope._replace(inputs={**scope.inputs, **nothing})
        if task.loop is not None:
            return self._loop(task, position, scope, artifacts)
        if isinstance(task.body, Dag):
            name = position.prefix + task.name
            position = self._run.add_group(name, GroupKind.DAG, position)
        return self._body(task, position, task.name, scope, artifacts)

    def _body(
        self, task: Task, position: Position, name: str, scope: Scope, artifact_scope: Scope
    ) -> TaskResult:
        """Expand a task's body once; `name` is the task's name, with a loop index if it has one."""
        inputs = {key: value.evaluate(scope) for key, value in task.inputs.items()}
        if task.own_inputs:
            own = Scope(inputs)
            inputs.update({key: value.evaluate(own) for key, value in task.own_inputs.items()})
        artifacts = {key: value.evaluate(artifact_scope) for key, value in task.artifacts.items()}
        body = task.body
        assert body is not None
        inputs = _known_values(body.defaults) | inputs
        name = position.prefix + name
        _check_name(name)
        first, locks = self._limits.step_count, Names()
        if body.locks:
            locks = self._limits.locks_of(body.locks, Scope(inputs), position.locks, task_of(name))
        result: TaskResult
        if isinstance(body, Dag):
            inside = position._replace(prefix=f"{name}.", locks=position.locks + locks)
            result = self._dag(body, inside, inputs, artifacts)
        else:
            self._run.add_step(task, body, position, name, inputs, artifacts)
            result = LeafResult(name)
        if locks or position.child_of >= 0:
            self._limits.close(first, position.child_of, body, locks)
        return result

    def _loop(self, task: Task, position: Position, scope: Scope, artifacts: Scope) -> TaskResult:
        assert task.loop is not None
        name = position.prefix + task.name
        value = task.loop.items.evaluate(scope)
        items = self._items(task, task.loop, value, task_of(name))
        parameter = value.parameter if isinstance(value, Missing) else ""
        is_unread = any(
            isinstance(part, Composed) and part.is_unread(scope) for part in within(task.loop.items)
        )
        width = self._widths.width(
            name, task_of(name), items, task.display_name, parameter, is_unread
        )
        if items is None and self._tree.drivers is Drivers.NONE:
            self._check_limited(task_of(name), width.iterations, position.child_of)
        position = self._run.add_group(
            name,
            GroupKind.LOOP,
            position,
            parallelism=task.loop.parallelism,
            width=width.iterations,
            width_assumed=width.assumed,
            learned_width=width.learned,
            display_name=task.display_name,
        )
        iterations: dict[int, TaskResult] = {}
        condition = task.condition
        if condition is None or not condition.of_item or condition.text not in position.conditions:
            condition = None
        for index in range(width.iterations):
            item = item_value(items[index]) if items is not None else UNKNOWN
            item_scope = scope._replace(item=item)
            is_met = None if condition is None else condition.cases(item_scope).holds
            if is_met is False:
                continue
            iteration = f"{task.name}[{index}]"
            inside = position._replace(
                iteration=(*position.iteration, index),
                items=(*position.items, _item_key(item, index)),
                conditions=position.conditions[:-1] if is_met else position.conditions,
                assumed=position.assumed or width.assumed,
            )
            if isinstance(task.body, Dag):
                has_driver = self._tree.drivers is Drivers.PER_ITERATION
                inside = self._run.add_group(
                    position.prefix + iteration, GroupKind.ITERATION, inside, has_driver=has_driver
                )
            iterations[index] = self._body(task, inside, iteration, item_scope, artifacts)
        if not iterations:
            self._run.leave_out(task, position.prefix)
        return LoopResult(iterations, position.upstream)

    def _check_limited(self, name: str, iterations: int, child_of: int) -> None:
        """Note a loop of which more iterations may run at once than are planned.

        In runs of KFP drivers make the iterations, and say their number before any of their steps.
        """
        if not self._limits.limits_children(child_of, iterations):
            limit = f"a parallelism of at most {iterations}" if iterations else "a parallelism"
            self._notices.add(
                UNLIMITED_LOOP,
                "how many of its iterations run at once is known only at run time; where a queue"
                f" must know it, give its template or the Workflow {limit}",
                name,
            )

    def _items(self, task: Task, loop: Loop, value: Value, name: str) -> list[Any] | None:
        """Return the items of a loop, one if the run fails there; None = known only at run time."""
        items = known_list(value)
        if items is None and (problem := loop.problem(value)):
            self._notices.add("loop-items", problem, name)
            items = [None]
        fields = _fields_of_items(task)
        for item in items or () if fields else ():
            lacking = [key for key in fields if isinstance(item, dict) and key not in item]
            if lacking:
                message = f"an item has no {lacking[0]:.80}, which it reads: the run fails there"
                self._notices.add("unknown-tag", message, name)
        return items

    def _hooks(
        self, hook: Task, position: Position, loop: LoopResult, scope: Scope, artifacts: Scope
    ) -> TaskResult:
        """Expand the exit hook of a loop, which Argo runs when an iteration has ended, for each.

        A DAG has a node for the loop as a whole, which has that hook, too.
        """
        if hook.body is None:
            return NoResult(position.upstream)
        (looped,) = hook.exit_of
        results: dict[int, TaskResult] = {}
        for index, ended in loop.iterations.items():
            inside = position._replace(
                upstream=ended.sinks,
                iteration=(*position.iteration, index),
                items=(*position.items, _item_key(UNKNOWN, index)),
            )
            name = f"{looped}[{index}]{hook.name.removeprefix(looped)}"
            results[index] = self._body(hook, inside, name, scope, artifacts)
        if hook.ends_loop:
            results[-1] = self._body(hook, position, hook.name, scope, artifacts)
        return LoopResult(results, position.upstream)


def _fields_of_items(task: Task) -> list[str]:
    """Return the fields of the items of a loop that its inputs read."""
    parts = (part for each in task.inputs.values() for part in within(each))
    return [each.key for each in parts if isinstance(each, Selected) and each.source == LoopItem()]


def _author_names(task: Task) -> Names:
    """Return the author's name for a branch or loop that a task is."""
    is_named = isinstance(task.body, Dag) and task.display_name
    return (task.display_name,) if is_named and (task.condition or task.loop) else ()


def _hooked_loop(task: Task, results: Mapping[str, TaskResult]) -> LoopResult | None:
    """Return the loop whose exit hook a task is, or None for any other task."""
    if not task.is_awaited or len(task.exit_of) != 1:
        return None
    ended = results[task.exit_of[0]]
    ended = ended.result if isinstance(ended, AfterFailureResult) else ended
    return ended if isinstance(ended, LoopResult) else None


def _item_key(item: Value, index: int) -> str:
    """Return a key of a loop's item; the key of a known item is the same in all runs."""
    text = known_text(item)
    return f"[{index}]" if text is None else text_digest(text)


def _known_values(values: Mapping[str, Any]) -> dict[str, Value]:
    return {name: KnownValue(value) for name, value in values.items()}


def _union(groups: list[Names]) -> Names:
    if len(groups) == 1:
        return groups[0]
    return tuple(sorted({name for group in groups for name in group}))


def _sinks(dag: Dag, results: Mapping[str, TaskResult], upstream: Names) -> Names:
    waited_for = {name for task in dag.tasks.values() for name in task.depends_on}
    ends = [
        results[task.name].sinks
        for task in dag.tasks.values()
        if (task.is_awaited or not task.exit_of) and task.name not in waited_for
    ]
    return _union(ends) if ends else upstream
