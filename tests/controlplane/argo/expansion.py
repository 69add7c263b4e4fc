"""`withItems`, `withParam`, `withSequence`: one task or step becomes many."""

import json
from collections.abc import Mapping
from typing import Any

from tests.controlplane.argo.exceptions import TemplateError
from tests.controlplane.argo.expressions import should_execute
from tests.controlplane.argo.substitution import substitute
from tests.controlplane.argo.templates import as_text

Json = dict[str, Any]

LOOPS = ("withItems", "withParam", "withSequence")


def is_expanded(task: Mapping[str, Any]) -> bool:
    """Whether a task or step stands for many."""
    return any(task.get(key) for key in LOOPS)


def expand(task: Json, values: Mapping[str, str]) -> list[Json]:
    """A resolved task or step, once for each item, named `name(index:item)`.

    Raises:
        TemplateError: there are no items to be had, and its `when` does not exclude it.
    """
    if not is_expanded(task):
        return [task]
    try:
        items = _items(task)
    except (TemplateError, ValueError) as error:
        if not _is_excluded(task):
            raise TemplateError(str(error)) from error
        items = []
    bare = {key: value for key, value in task.items() if key not in LOOPS}
    found = []
    for index, item in enumerate(items):
        names, shown = _item_names(item)
        clean = shown.replace("(", "").replace(")", "")
        filled = substitute(bare, {**values, **names})
        found.append({**filled, "name": f"{task['name']}({index}:{clean})"})
    return found


def _is_excluded(task: Mapping[str, Any]) -> bool:
    try:
        return not should_execute(task.get("when", ""))
    except TemplateError:
        return False


def _items(task: Mapping[str, Any]) -> list[Any]:
    if task.get("withItems"):
        return list(task["withItems"])
    if task.get("withParam"):
        try:
            items = json.loads(task["withParam"])
        except ValueError:
            items = None
        if not isinstance(items, list):
            text = str(task["withParam"]).strip()
            raise TemplateError(f"withParam value could not be parsed as a JSON list: {text}")
        return items
    return _sequence(task["withSequence"])


def _sequence(sequence: Mapping[str, Any]) -> list[str]:
    start = int(as_text(sequence.get("start", "0")))
    if sequence.get("end") is not None:
        end = int(as_text(sequence["end"]))
    elif sequence.get("count") is not None:
        count = int(as_text(sequence["count"]))
        if count == 0:
            return []
        end = start + count - 1
    else:
        raise TemplateError("neither end nor count was specified in withSequence")
    step = 1 if start <= end else -1
    form = sequence.get("format") or "%d"
    return [form % number for number in range(start, end + step, step)]


def _item_names(item: Any) -> tuple[dict[str, str], str]:
    """What `{{item...}}` means for an item, and how its node is named."""
    if isinstance(item, dict):
        texts = {key: _shown(value) for key, value in item.items()}
        names = {f"item.{key}": text for key, text in texts.items()}
        shown = ",".join(sorted(f"{key}:{text}" for key, text in texts.items()))
        return {**names, "item": as_text(item)}, shown
    if isinstance(item, list):
        return {"item": as_text(item)}, "[" + " ".join(_shown(entry) for entry in item) + "]"
    return {"item": _shown(item)}, _shown(item)


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return as_text(value)
