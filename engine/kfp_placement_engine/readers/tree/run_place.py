"""Where in a run its expansion is."""

from dataclasses import dataclass

from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.values import Value


@dataclass(frozen=True)
class Place:
    """Where in the expanded run the expansion is.

    Attributes:
        prefix: what step names begin with: "", or a path and a dot.
        task_prefix: the same with `[*]` in place of loop indexes.
        group: name of the innermost group.
        iteration: loop indexes, outermost first.
        conditions: condition expressions, outermost first.
        upstream: steps that must have ended before anything here starts, sorted.
        exit_task: inside an exit task.
        assumed: inside an iteration that an assumed width made.
    """

    prefix: str = ""
    task_prefix: str = ""
    group: str = ""
    iteration: tuple[int, ...] = ()
    conditions: tuple[str, ...] = ()
    upstream: tuple[str, ...] = ()
    exit_task: bool = False
    assumed: bool = False


@dataclass(frozen=True)
class IterationScopes:
    """Scopes of one iteration."""

    parameters: Scope
    artifacts: Scope
    item: Value
