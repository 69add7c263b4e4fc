"""Schemas of the JSON that commands print, on which programs may rely: draft 2020-12."""

import json
from importlib import resources
from typing import Any


def schema(name: str) -> dict[str, Any]:
    """Return a schema by its name.

    Args:
        name: `plan` (`plan`, `preview`) or `runs` (`list`, `explain`, `queue`, `history`).
    """
    text = resources.files(__name__).joinpath(f"{name}.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
