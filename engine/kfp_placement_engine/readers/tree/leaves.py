"""The leaves of a task tree: what a task runs, with expressions for what its inputs decide."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kfp_placement_engine.model.pod_constraints import Requirement
from kfp_placement_engine.model.run_graph import Retry, StepKind
from kfp_placement_engine.readers.text.fields import Fields
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import EMPTY, Constant, Expression, Scope

NOWHERE = Place("")
"""Place of a task that is not read from a file."""


@dataclass(frozen=True)
class ResourceSpec:
    """One resource of a container, not yet evaluated.

    Attributes:
        name, request, limit: name of the resource, its request and its limit.
        container: position of the container among those that run beside each other.
    """

    name: Expression
    request: Expression | None = None
    limit: Expression | None = None
    container: int = 0


@dataclass(frozen=True)
class InitContainer:
    """An init container that requests something.

    Attributes:
        resources: requests and limits of the container.
        is_sidecar: whether it goes on beside the main containers (`restartPolicy: Always`).
    """

    resources: tuple[ResourceSpec, ...]
    is_sidecar: bool = False


class Lock(NamedTuple):
    """A mutex or semaphore that what a template runs has while it is under way.

    Attributes:
        kind: `mutex` or `semaphore`.
        name: name of the mutex, or for a semaphore the key of its limit: `ConfigMap/key`.
    """

    kind: str
    name: Expression


@dataclass(frozen=True)
class MadeObject:
    """An object of Kubernetes that a step makes, such as an MPIJob.

    Attributes:
        manifest: expression for the object.
        is_awaited: whether the step ends only when the object has reached a state.
    """

    manifest: Expression
    is_awaited: bool


@dataclass(frozen=True, slots=True)
class Leaf:
    """A task that runs a pod; its expressions are evaluated with the task's own inputs.

    Attributes:
        kind: kind of step.
        image: image of the main container.
        component: digest of image, command and arguments; see `run_graph.Step`.
        resources: requests and limits of its containers.
        container_count: number of its containers that run beside each other.
        init_containers: init containers of its pod, in their order.
        pod_resources: requests and limits of its pod as a whole, as written.
        resource_claims: names of claims for devices (dynamic resource allocation), not counted.
        made_object: object that the step makes; None = none.
        labels, annotations: labels and annotations of the pod, by the author.
        node_selectors: expressions for mappings of node labels, of which later ones win.
        affinities: expressions for Kubernetes' node affinities.
        anti_affinities: expressions for Kubernetes' anti-affinities to pods.
        of_run: requirement in them that all pods of the same run fulfil, and no others.
        tolerations: expressions for one toleration or a list of them.
        claims: expressions for names of volume claims, or for outputs of createpvc tasks.
        uses_workspace: whether it mounts the run's workspace itself.
        fills_workspace: whether its outputs are in the workspace, so that their readers mount it
            too.
        access_modes: access modes of the claim that a createpvc task makes.
        claim_name: name of the claim that a createpvc task makes; "" = chosen at run time.
        claim_size: size and storage class of the claim that a createpvc task makes.
        start_limits: expressions for limits of the time until its pod runs, by Argo's setting.
        end_limits: expressions for limits of the time that its pod may take, by setting.
        duration: expression for its run time, for a kind of step whose file states one.
        locks: locks that it has while it is under way.
        attempt_limit: largest number of attempts.
        retry: rules of its retries.
        caching_enabled: whether its result may come from the cache.
        has_driver: whether a KFP driver pod runs before it.
        defaults: values of inputs that the task does not set.
        numeric_inputs: names of inputs that are numbers or booleans, where that is known.
        problems: codes and messages of problems that are known whatever the inputs are.
        in_scope: function that returns the leaf with these inputs, if the leaf as a whole depends
            on them; None = only its expressions do.
        place: place in the file, for messages.
    """

    kind: StepKind = StepKind.CONTAINER
    image: Expression = EMPTY
    component: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    container_count: int = 1
    init_containers: tuple[InitContainer, ...] = ()
    pod_resources: Mapping[str, Any] = field(default_factory=dict)
    resource_claims: tuple[str, ...] = ()
    made_object: MadeObject | None = None
    labels: Mapping[str, Expression] = field(default_factory=dict)
    annotations: Mapping[str, Expression] = field(default_factory=dict)
    node_selectors: tuple[Expression, ...] = ()
    affinities: tuple[Expression, ...] = ()
    anti_affinities: tuple[Expression, ...] = ()
    of_run: Requirement | None = None
    tolerations: tuple[Expression, ...] = ()
    claims: tuple[Expression, ...] = ()
    uses_workspace: bool = False
    fills_workspace: bool = False
    access_modes: Expression = EMPTY
    claim_name: Expression = EMPTY
    claim_size: tuple[Expression, Expression] = (EMPTY, EMPTY)
    start_limits: Mapping[str, Expression] = field(default_factory=dict)
    end_limits: Mapping[str, Expression] = field(default_factory=dict)
    duration: Expression = EMPTY
    locks: tuple[Lock, ...] = ()
    attempt_limit: int = 1
    retry: Retry = field(default_factory=Retry)
    caching_enabled: bool = False
    has_driver: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    numeric_inputs: frozenset[str] = frozenset()
    problems: tuple[tuple[str, str], ...] = ()
    in_scope: "Callable[[Scope], Leaf] | None" = None
    place: Place = NOWHERE

    def all_resources(self) -> Iterator[ResourceSpec]:
        """Yield requests and limits of all its containers."""
        yield from self.resources
        for container in self.init_containers:
            yield from container.resources


def container_specs(
    container: Fields, expression: Callable[[Any], Expression] = Constant, number: int = 0
) -> tuple[ResourceSpec, ...]:
    """Return the requests and limits of a container in Kubernetes' form.

    Args:
        container: the container.
        expression: function that turns text of the file into an expression.
        number: position of the container among those that run beside each other.

    Raises:
        InputError: its resources are malformed.
    """
    if container.get("resources") is None:
        return ()
    resources = container.fields("resources")
    requests, limits = resources.mapping("requests"), resources.mapping("limits")
    return tuple(
        ResourceSpec(
            Constant(name),
            expression(requests[name]) if name in requests else None,
            expression(limits[name]) if name in limits else None,
            number,
        )
        for name in sorted({*requests, *limits})
    )


def init_containers(
    containers: Iterable[Fields], expression: Callable[[Any], Expression] = Constant
) -> tuple[InitContainer, ...]:
    """Return the init containers that request something; arguments as in `container_specs`.

    Raises:
        InputError: the resources of a container are malformed.
    """
    read = (
        InitContainer(container_specs(each, expression), each.get("restartPolicy") == "Always")
        for each in containers
    )
    return tuple(container for container in read if container.resources)
