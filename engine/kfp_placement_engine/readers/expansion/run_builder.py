"""The graph of a run, to which steps and groups are added one by one, at their positions."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.concurrency import Branch
from kfp_placement_engine.model.history import text_digest
from kfp_placement_engine.model.notices import RECURSIVE_TEMPLATE
from kfp_placement_engine.model.run_graph import Group, GroupKind, RunGraph, Step, StepKind
from kfp_placement_engine.model.step_names import task_of
from kfp_placement_engine.readers.expansion.leaf_facts import LeafFactsReader, numeric_arguments
from kfp_placement_engine.readers.expansion.run_claims import ClaimRegistry
from kfp_placement_engine.readers.expansion.run_limits import RunLimits
from kfp_placement_engine.readers.expansion.step_inputs import DataIndex
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.leaves import Leaf
from kfp_placement_engine.readers.tree.notices import NoticeCollector
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import Dag, Drivers, Names, Task, TaskTree
from kfp_placement_engine.readers.tree.values import Value

_PARTS_PER_STEP = 30
"""Parts of each step, such as requests, in the largest run that is read; KFP's have some ten."""


class Position(NamedTuple):
    """Position of the expansion in the expanded run.

    Attributes:
        prefix: beginning of step names: "", or a path and a dot.
        group: name of the innermost group.
        iteration: loop indexes, outermost first.
        items: digest of the item of each of these loops, or its index if the item is not known.
        conditions: condition expressions, outermost first.
        branches: branches of choices, outermost first.
        inside: author's names for branches and loops, outermost first.
        after_failure: whether the position is only reached after a failure.
        upstream: steps that must have ended before anything here starts, sorted.
        exit_task: whether the position is inside an exit task.
        child_of: limit of the DAG that the tasks here are children of; -1 = none.
        locks: names of the locks that are held here.
        assumed: whether the position is inside an iteration of a loop of assumed width.
    """

    prefix: str = ""
    group: str = ""
    iteration: tuple[int, ...] = ()
    items: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    branches: tuple[Branch, ...] = ()
    inside: Names = ()
    after_failure: bool = False
    upstream: Names = ()
    exit_task: bool = False
    assumed: bool = False
    child_of: int = -1
    locks: Names = ()


class RunBuilder:
    """Builder of the graph of a run.

    Attributes:
        limits: limits of what may be under way at once.
    """

    def __init__(self, tree: TaskTree, options: ReadOptions, notices: NoticeCollector) -> None:
        """Begin without steps.

        Args:
            tree: the run.
            options: settings, of which the limits of sizes and of semaphores are used.
            notices: collector of what people should know.
        """
        self._tree = tree
        self._options = options
        self._notices = notices
        self._has_drivers = tree.drivers is not Drivers.NONE
        self._facts = LeafFactsReader()
        self._claims = ClaimRegistry(tree.run_claims, notices)
        self._data = DataIndex()
        self._steps: dict[str, Step] = {}
        self._left_out: dict[str, str] = {}
        self._groups = {"": Group("", GroupKind.ROOT)} if self._has_drivers else {}
        self._dependencies = self._parts = 0
        self._error = tree.root.place.error
        self.limits = RunLimits(tree, options.semaphores, notices)

    def graph(self) -> RunGraph:
        """Return the graph of what was added.

        Raises:
            InputError: there is no step.
        """
        tree = self._tree
        if not self._steps and self._left_out:
            raise self._error(
                "no step runs, since the conditions of all branches with steps are known to be"
                " false; give other arguments, if that is not what you mean"
            )
        if not self._steps:
            circles = [each for each in tree.notices if each.code == RECURSIVE_TEMPLATE]
            why = f" ({circles[0].message.partition(';')[0]})" if circles else ""
            raise self._error(f"holds no step; nothing can be planned{why}")
        return RunGraph(
            name=tree.name,
            source=tree.source,
            steps=tuple(self._steps.values()),
            groups=tuple(self._groups.values()),
            claims=self._claims.claims(),
            limits=self.limits.limits(),
            notices=self._notices.notices(),
            end_limit=tree.end_limit,
            namespace=tree.namespace,
            run_id=tree.run_id,
            workflow=tree.workflow,
            left_out=self._left_out,
            is_outline=tree.is_outline,
        )

    def add_group(self, name: str, kind: GroupKind, position: Position, **fields: Any) -> Position:
        """Add a group if the run has drivers, and return the position in it.

        Args:
            name: name of the group.
            kind: kind of the group.
            position: position of the group.
            fields: other fields of the group.

        Raises:
            InputError: there is a group of that name.
            LimitError: there are too many groups.
        """
        if not self._has_drivers:
            return position
        if len(self._groups) > 3 * self._options.max_steps:
            raise self._error("too many nested pipelines and iterations", LimitError)
        if name in self._groups:
            raise self._error(f"two groups are called {name!r:.120}; rename one")
        self._groups[name] = Group(name, kind, position.group, position.upstream, **fields)
        return position._replace(group=name)

    def leave_out(self, task: Task, prefix: str) -> None:
        """Note the names and locks of a task that surely does not run.

        Args:
            task: the task.
            prefix: beginning of its name.
        """
        noun = "loop" if task.loop else "branch"
        where = f"{noun} {task.display_name or prefix + task.name:.120}"
        open_tasks = [(task_of(prefix), task)]
        while open_tasks:
            before, each = open_tasks.pop()
            name = f"{before}{each.name}{'[*]' if each.loop else ''}"
            if each.body is None or name in self._left_out:
                continue
            self._left_out[name] = where
            self.limits.leave_out(each.body)
            if isinstance(each.body, Dag):
                open_tasks += [(f"{name}.", inner) for inner in each.body.tasks.values()]

    def add_step(
        self,
        task: Task,
        leaf: Leaf,
        position: Position,
        name: str,
        inputs: Mapping[str, Value],
        artifacts: Mapping[str, Value],
    ) -> None:
        """Add the step of a leaf.

        Args:
            task: task that runs the leaf.
            leaf: the leaf.
            position: position of the step.
            name: name of the step.
            inputs: values of its input parameters.
            artifacts: values of its input artifacts.

        Raises:
            InputError: a value is malformed, or there is a step of that name.
            LimitError: there are too many steps, or dependencies between them.
        """
        task_name = task_of(name)
        scope = Scope(inputs)
        leaf = leaf.in_scope(scope) if leaf.in_scope else leaf
        facts = self._facts.read(leaf, scope)
        self._count_parts(facts.parts)
        for code, message in facts.warnings:
            self._notices.add(code, message, task_name)
        hints = facts.hints
        step = Step(
            name=name,
            task=task_name,
            kind=leaf.kind,
            group=position.group,
            iteration=position.iteration,
            iteration_key=text_digest("/".join(position.items)) if position.items else "",
            component=leaf.component,
            assumed=position.assumed,
            conditions=position.conditions,
            branches=position.branches,
            inside=position.inside,
            after_failure=position.after_failure,
            exit_task=position.exit_task,
            display_name=task.display_name,
            inputs=self._data.inputs(inputs, artifacts, hints.input_bytes),
            arguments=numeric_arguments(inputs, leaf.numeric_inputs),
            claims=self._claims.add_user(leaf, name, task_name, scope, artifacts),
            depends_on=position.upstream,
            attempt_limit=leaf.attempt_limit,
            retry=leaf.retry,
            caching_enabled=leaf.caching_enabled,
            has_driver=leaf.has_driver,
            **facts.step_fields,
        )
        self._count(step)
        self._data.add_producer(name, hints.output_bytes)
        if leaf.kind is StepKind.CREATE_PVC:
            self._claims.add_created(leaf, name, scope)

    def _count_parts(self, parts: int) -> None:
        """Count the parts of a step, before it is made."""
        self._parts += parts
        if self._parts > _PARTS_PER_STEP * self._options.max_steps:
            raise self._error(
                f"its steps have more than {_PARTS_PER_STEP * self._options.max_steps} requests,"
                " labels, tolerations and rules about nodes; say less in each of them, or split the"
                " pipeline",
                LimitError,
            )

    def _count(self, step: Step) -> None:
        if step.name in self._steps:
            raise self._error(f"two steps are called {step.name!r:.120}; rename one task")
        self._steps[step.name] = step
        self.limits.add_step(step)
        self._dependencies += len(step.depends_on)
        if len(self._steps) > self._options.max_steps:
            raise self._error(
                f"more than {self._options.max_steps} steps; "
                "make its loops narrower or split the pipeline",
                LimitError,
            )
        if self._dependencies > self._options.max_dependencies:
            raise self._error(
                f"more than {self._options.max_dependencies} dependencies"
                " between single steps; put a collecting step between wide loops",
                LimitError,
            )
