"""The order of the tasks of a DAG, and a lower bound of a tree's number of steps."""

import heapq
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kfp_placement_engine.exceptions import LimitError
from kfp_placement_engine.readers.text.place import Place
from kfp_placement_engine.readers.tree.expressions import Scope
from kfp_placement_engine.readers.tree.options import ReadOptions
from kfp_placement_engine.readers.tree.tasks import MAX_TREE_DEPTH, Dag, Task
from kfp_placement_engine.readers.tree.values import known_list

_DIGITS = re.compile(r"([0-9]+)")

NaturalKey = tuple[tuple[int, str], ...]


def natural_key(name: str) -> NaturalKey:
    """Return a sort key that puts `work-2` before `work-10`."""
    parts = _DIGITS.split(name)
    # Odd parts are digits: without leading zeros the longer number is the larger one.
    stripped = [part.lstrip("0") if index % 2 else part for index, part in enumerate(parts)]
    return (
        *((len(part) if index % 2 else 0, part) for index, part in enumerate(stripped)),
        (0, name),
    )


def ordered_tasks(dag: Dag) -> list[Task]:
    """Return a DAG's tasks, each after the tasks that it waits for, otherwise by name.

    Raises:
        InputError: a task waits for one that does not exist, or tasks wait for each other.
    """
    waits = {name: {*task.depends_on, *task.exit_of} for name, task in dag.tasks.items()}
    for name, before in waits.items():
        for other in sorted(each for each in before if each not in dag.tasks):
            raise dag.place.error(
                f"task {name!r:.80} waits for {other!r:.80}, which does not exist"
            )
    return [dag.tasks[name] for name in ordered(waits, natural_key, dag.place)]


def ordered(
    waits: Mapping[str, Collection[str]], rank: Callable[[str], Any], place: Place
) -> list[str]:
    """Return names, each after the names that it waits for, otherwise by rank.

    Args:
        waits: names that must come before, by name.
        rank: function that returns the rank of a name; the lowest comes first.
        place: place of all these names, for messages.

    Raises:
        InputError: names wait for each other.
    """
    waiting = {name: len(before) for name, before in waits.items()}
    successors: dict[str, list[str]] = {name: [] for name in waits}
    for name, before in waits.items():
        for other in before:
            successors[other].append(name)
    ready = [(rank(name), name) for name, count in waiting.items() if count == 0]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        _, name = heapq.heappop(ready)
        order.append(name)
        for other in successors[name]:
            waiting[other] -= 1
            if waiting[other] == 0:
                heapq.heappush(ready, (rank(other), other))
    if len(order) < len(waits):
        circle = sorted((name for name, count in waiting.items() if count), key=rank)
        raise place.error(
            "tasks wait for each other in a circle, among them "
            + ", ".join(f"{name:.80}" for name in circle[:5])
        )
    return order


def check_size(root: Dag, options: ReadOptions) -> None:
    """Refuse trees that would expand to too many steps, before expanding them.

    Raises:
        LimitError: the tree has too many steps even if every loop of unknown width ran once, or is
                nested too deeply.
    """
    _least_steps(root, options, {}, 0)


def _least_steps(dag: Dag, options: ReadOptions, counted: dict[int, int], depth: int) -> int:
    if id(dag) in counted:
        return counted[id(dag)]
    if depth >= MAX_TREE_DEPTH:
        raise dag.place.error(f"nested deeper than {MAX_TREE_DEPTH} levels", LimitError)
    total = 0
    for task in dag.tasks.values():
        steps = 0 if task.body is None else 1
        if isinstance(task.body, Dag):
            steps = max(1, _least_steps(task.body, options, counted, depth + 1))
        if task.loop is not None:
            items = known_list(task.loop.items.evaluate(Scope()))
            steps *= 1 if items is None else len(items)
        total += steps
        if total > options.max_steps:
            raise dag.place.error(
                f"at least {total} steps with task {task.name!r:.80}; "
                f"a run may have at most {options.max_steps}: make its loops narrower",
                LimitError,
            )
    counted[id(dag)] = total
    return total
