"""A run as in its file: DAGs of tasks, loops, conditions and exit tasks, not yet expanded.

Both KFP sources and plain Argo Workflows are translated into this one form; `expansion` alone turns
it into a `RunGraph`. A `Dag` or `Leaf` used by several tasks is one shared object.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, Protocol

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.notices import Notice
from kfp_placement_engine.model.run_graph import EndLimit, RunClaim
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.choices import Cases
from kfp_placement_engine.readers.tree.expressions import Expression, Scope
from kfp_placement_engine.readers.tree.leaves import NOWHERE, Leaf, Lock
from kfp_placement_engine.readers.tree.sequences import NumberSequence
from kfp_placement_engine.readers.tree.values import Value, gapless, known_text

MAX_TREE_DEPTH = 98
"""Deepest nesting of DAGs: Argo runs 99 templates inside each other (`maxAllowedStackDepth`)."""


class Nesting:
    """Names of the DAGs that are being read, each inside the one before it."""

    def __init__(self) -> None:
        self._open: list[Hashable] = []

    def __contains__(self, name: object) -> bool:
        return name in self._open

    @contextmanager
    def inside(self, name: Hashable, place: Place) -> Iterator[None]:
        """Read a DAG within those that are being read.

        Raises:
            InputError: the DAG contains itself.
            LimitError: the DAGs are nested too deeply.
        """
        if name in self._open:
            raise place.error("contains itself")
        if len(self._open) > MAX_TREE_DEPTH:
            raise place.error(f"nested deeper than {MAX_TREE_DEPTH} levels", LimitError)
        self._open.append(name)
        yield
        self._open.pop()


@dataclass(frozen=True, slots=True)
class Loop:
    """A task that runs once per item.

    Attributes:
        items: expression for the list of items, evaluated in the enclosing DAG.
        parallelism: largest number of iterations at once; 0 = no limit.
    """

    items: Expression
    parallelism: int = 0

    def problem(self, value: Value) -> str:
        """Return why the run fails with items that are not a list; "" = it may not."""
        text = gapless(known_text(value))
        if not text:
            return ""
        what = "whole number" if isinstance(self.items, NumberSequence) else "JSON list"
        return f"the run fails where it is to loop over {text!r:.80}, which is not a {what}"


class Condition(Protocol):
    """A condition without which a task does not run; looking at it never raises."""

    @property
    def text(self) -> str:
        """The condition as in the file, for people."""

    @property
    def of_item(self) -> bool:
        """True if the condition depends on the item of the loop that the task itself is."""

    @property
    def is_refused(self) -> bool:
        """True if the run surely fails at it, where it is asked."""

    def cases(self, scope: Scope) -> Cases:
        """Return what it needs in the DAG around the task to hold, and not to hold."""

    def problem(self, scope: Scope) -> str:
        """Return why it cannot be evaluated, as the end of a sentence; "" = it can."""


Names = tuple[str, ...]
"""Names of tasks, steps or inputs."""

OutputKind = Literal["parameters", "artifacts"]

OutputSources = tuple[tuple[str, str], ...]
"""Tasks that may provide an output of their DAG, each with its output key."""

Outputs = Mapping[tuple[OutputKind, str], OutputSources]
"""Sources of a DAG's outputs, by kind and name."""


@dataclass(frozen=True)
class Dag:
    """Tasks that wait for each other.

    Attributes:
        tasks: tasks by name, in no particular order.
        outputs: sources of the DAG's own outputs.
        defaults: values of inputs that the task does not set.
        template: name of the template that it is read from, for people; "" = none.
        parallelism: largest number of its tasks that are under way at once; 0 = no limit.
        locks: locks that it has while it is under way.
        place: place in the file, for messages.
    """

    tasks: Mapping[str, "Task"]
    outputs: Outputs = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    template: str = ""
    parallelism: int = 0
    locks: tuple[Lock, ...] = ()
    place: Place = NOWHERE


@dataclass(frozen=True, slots=True)
class Task:
    """One task of a DAG.

    Attributes:
        name: name of the task, which is unique in its DAG.
        body: leaf or DAG that the task runs; None runs nothing.
        depends_on: tasks of the same DAG that must have ended before.
        exit_of: tasks after whose end an exit task runs; empty for other tasks.
        is_awaited: whether what waits for its DAG waits for it, though it is an exit task.
        ends_loop: whether it runs after a loop as well, beside after each of its iterations.
        inputs: input parameters, evaluated in the enclosing DAG.
        own_inputs: input parameters made from the task's other inputs (text with gaps).
        artifacts: input artifacts, evaluated in the enclosing DAG.
        condition: condition without which the task is skipped; None = there is none.
        trigger: condition on the ends of the tasks that it waits for, without which it is omitted;
            None = the usual one of the workflow engine.
        continues_after: phases, beside the usual ones, after which the tasks that wait for it run.
        loop: loop that runs the body once for each item; None = the body runs once.
        display_name: the author's name for the task; "" = the task's own name.
        required_inputs: inputs that the DAG must be given, or the task fails.
        lost_input: function that returns code and message of the problem that one of these is not
            there.
    """

    name: str
    body: Leaf | Dag | None
    depends_on: Names = ()
    exit_of: Names = ()
    is_awaited: bool = False
    ends_loop: bool = False
    inputs: Mapping[str, Expression] = field(default_factory=dict)
    own_inputs: Mapping[str, Expression] = field(default_factory=dict)
    artifacts: Mapping[str, Expression] = field(default_factory=dict)
    condition: Condition | None = None
    trigger: Condition | None = None
    continues_after: frozenset[str] = frozenset()
    loop: Loop | None = None
    display_name: str = ""
    required_inputs: Names = ()
    lost_input: Callable[[str], tuple[str, str]] = lambda _name: ("", "")


WORKSPACE_CLAIM = "kfp-workspace"
"""The volume claim that KFP makes for a whole run, if the pipeline asks for one."""


class Drivers(StrEnum):
    """Driver pods that KFP runs before groups of steps."""

    NONE = "none"
    PER_LOOP = "per loop"
    """KFP 3: before DAGs and loops."""

    PER_ITERATION = "per iteration"
    """KFP 2: before DAGs, loops, and iterations that are DAGs."""


@dataclass(frozen=True)
class TaskTree:
    """A whole run.

    Attributes:
        name: name of the pipeline.
        source: format of the file, as in `RunGraph.source`.
        root: outermost DAG.
        arguments: values of the run's parameters.
        missing_arguments: names of parameters without a value.
        drivers: driver pods that KFP runs.
        parallelism: largest number of pods at once; 0 = no limit.
        locks: locks that the run has from its begin to its end.
        semaphores: limits of semaphores in ConfigMaps that are known, by `ConfigMap/key`.
        run_claims: volume claims made for the run before its first step.
        notices: notices of the reader.
        end_limit: limit of the time that the run may take.
        workflow, namespace, run_id, is_outline: values of the same fields of `RunGraph`.
    """

    name: str
    source: str
    root: Dag
    arguments: Mapping[str, Any]
    missing_arguments: Names
    drivers: Drivers = Drivers.NONE
    parallelism: int = 0
    locks: tuple[Lock, ...] = ()
    semaphores: Mapping[str, int] = field(default_factory=dict)
    run_claims: tuple[RunClaim, ...] = ()
    notices: tuple[Notice, ...] = ()
    end_limit: EndLimit | None = None
    workflow: str = ""
    namespace: str = ""
    run_id: str = ""
    is_outline: bool = False
