"""`withItems`, `withSequence`: one task becomes many."""

from collections.abc import Mapping
from typing import Any

from tests.controlplane.argo.conditions import should_execute
from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.substitution import substitute
from tests.controlplane.argo.templates import Json, as_text

LOOPS = ("withItems", "withSequence")


def is_expanded(task: Mapping[str, Any]) -> bool:
    """Return whether a task stands for many."""
    return any(task.get(key) for key in LOOPS)


def expand(task: Json, values: Mapping[str, str]) -> list[Json]:
    """A resolved task, once for each item, named `name(index:item)`.

    Raises:
        TemplateError: nobody has said how many, and its `when` does not exclude it.
    """
    if not is_expanded(task):
        return [task]
    bare = {key: value for key, value in task.items() if key not in LOOPS}
    return [
        {**substitute(bare, {**values, "item": item}), "name": f"{task['name']}({index}:{item})"}
        for index, item in enumerate(_items(task))
    ]


def _items(task: Mapping[str, Any]) -> list[str]:
    if task.get("withItems"):
        return list(task["withItems"])
    count = as_text(task["withSequence"]["count"])
    try:
        return [str(number) for number in range(int(count))]
    except ValueError as error:
        if should_execute(task.get("when", "")):
            raise TemplateError(f"withSequence: {count!r} is not a count") from error
        return []
