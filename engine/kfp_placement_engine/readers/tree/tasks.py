"""A run as its file tells it: DAGs of tasks, loops, conditions, exit tasks, not yet expanded.

Both KFP sources and plain Argo Workflows are translated into this one form; `expansion` alone turns
it into a `RunGraph`. A `Dag` or `Leaf` used by several tasks is one shared object.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.model.run_graph import Notice, StepKind
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import EMPTY, Expression

NOWHERE = Place("")
"""The place of a task that is not read from a file."""

MAX_TREE_DEPTH = 50
"""DAGs nested deeper are refused: the deepest known pipelines reach 6."""


class Nesting:
    """Names of the DAGs that are being read, each within the one before it."""

    def __init__(self) -> None:
        self._open: list[str] = []

    def __contains__(self, name: object) -> bool:
        return name in self._open

    @contextmanager
    def inside(self, name: str, place: Place) -> Iterator[None]:
        """Read a DAG within those that are being read.

        Raises:
            InputError: it contains itself.
            LimitError: they are nested too deeply.
        """
        if name in self._open:
            raise place.error("contains itself")
        if len(self._open) > MAX_TREE_DEPTH:
            raise place.error(f"nested deeper than {MAX_TREE_DEPTH} levels", LimitError)
        self._open.append(name)
        yield
        self._open.pop()


@dataclass(frozen=True)
class ResourceSpec:
    """One resource of the main container, as written."""

    name: Expression
    request: Expression | None = None
    limit: Expression | None = None


@dataclass(frozen=True)
class Leaf:
    """A task that is a pod. Expressions are evaluated with the task's own inputs.

    Attributes:
        kind: what runs it.
        image: image of the main container.
        component: digest of what it runs; see `run_graph.Step`.
        resources: what the main container asks for.
        labels, annotations: set by the author.
        node_selectors: each evaluates to a mapping of node labels; later ones win.
        affinities: each evaluates to a Kubernetes node affinity.
        tolerations: each evaluates to one toleration or a list of them.
        claims: each evaluates to the name of a volume claim, or to what a createpvc task makes.
        uses_workspace: mounts the run's workspace itself.
        fills_workspace: what it puts out lies in the workspace; readers of it mount that too.
        access_modes: of a createpvc task: the modes of the claim it makes.
        claim_name: of a createpvc task: the name of the claim, "" if made up at run time.
        attempt_limit: how often it is tried at most.
        caching_enabled: its result may come from the cache.
        has_driver: a KFP driver pod runs before it.
        defaults: values of inputs that the task does not set.
        numeric_inputs: names of inputs that are numbers or booleans, where that is known.
        place: where it is in the file, for messages.
    """

    kind: StepKind = StepKind.CONTAINER
    image: Expression = EMPTY
    component: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    labels: Mapping[str, Expression] = field(default_factory=dict)
    annotations: Mapping[str, Expression] = field(default_factory=dict)
    node_selectors: tuple[Expression, ...] = ()
    affinities: tuple[Expression, ...] = ()
    tolerations: tuple[Expression, ...] = ()
    claims: tuple[Expression, ...] = ()
    uses_workspace: bool = False
    fills_workspace: bool = False
    access_modes: Expression = EMPTY
    claim_name: Expression = EMPTY
    attempt_limit: int = 1
    caching_enabled: bool = False
    has_driver: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    numeric_inputs: frozenset[str] = frozenset()
    place: Place = NOWHERE


@dataclass(frozen=True)
class Loop:
    """A task that runs once per item.

    Attributes:
        items: evaluates, in the enclosing DAG, to the list of items.
        parallelism: at most this many iterations at once; 0 = no limit.
    """

    items: Expression
    parallelism: int = 0


OutputKind = Literal["parameters", "artifacts"]

OutputSources = tuple[tuple[str, str], ...]
"""(task, output key) of each task that may provide an output of its DAG."""

Outputs = Mapping[tuple[OutputKind, str], OutputSources]
"""Where each output of a DAG comes from, by kind and name."""


@dataclass(frozen=True)
class Dag:
    """Tasks and what waits for what.

    Attributes:
        tasks: by name, in no particular order.
        outputs: where the DAG's own outputs come from.
        defaults: values of inputs that the task does not set.
        place: where it is in the file, for messages.
    """

    tasks: Mapping[str, "Task"]
    outputs: Outputs = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    place: Place = NOWHERE


@dataclass(frozen=True)
class Task:
    """One task of a DAG.

    Attributes:
        name: unique in its DAG.
        body: what it runs; None runs no pod (a pause, a request).
        depends_on: tasks of the same DAG that must have ended before.
        exit_of: not empty for an exit task: the tasks after whose end it runs.
        inputs: parameters, evaluated in the enclosing DAG.
        own_inputs: parameters made from the task's other inputs (text with gaps).
        artifacts: input artifacts, evaluated in the enclosing DAG.
        condition: it is skipped when this does not hold; "" = no condition.
        loop: runs the body once per item.
        display_name: the author's name for it, "" if it is the task's.
    """

    name: str
    body: Leaf | Dag | None
    depends_on: tuple[str, ...] = ()
    exit_of: tuple[str, ...] = ()
    inputs: Mapping[str, Expression] = field(default_factory=dict)
    own_inputs: Mapping[str, Expression] = field(default_factory=dict)
    artifacts: Mapping[str, Expression] = field(default_factory=dict)
    condition: str = ""
    loop: Loop | None = None
    display_name: str = ""


WORKSPACE_CLAIM = "kfp-workspace"
"""The volume claim that KFP makes for a whole run, if the pipeline asks for one."""


@dataclass(frozen=True)
class TaskTree:
    """A whole run.

    Attributes:
        name: the pipeline's name.
        source: format, as in `RunGraph.source`.
        root: the outermost DAG.
        arguments: values of the run's parameters.
        missing_arguments: parameters without a value.
        has_drivers: KFP driver pods run before DAGs, loops and iterations.
        run_claims: volume claims made for the run before its first step, with their access modes.
        notices: what the reader wants people to know.
        workflow, namespace, run_id: as in `RunGraph`.
    """

    name: str
    source: str
    root: Dag
    arguments: Mapping[str, Any] = field(default_factory=dict)
    missing_arguments: tuple[str, ...] = ()
    has_drivers: bool = False
    run_claims: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    notices: tuple[Notice, ...] = ()
    workflow: str = ""
    namespace: str = ""
    run_id: str = ""
