"""What programs may rely on in the JSON that commands print: JSON Schema, draft 2020-12."""

import json
from importlib import resources
from typing import Any


def schema(name: str) -> dict[str, Any]:
    """The schema of that name.

    Args:
        name: `plan` (`plan`, `preview`) or `runs` (`list`, `explain`, `queue`, `history`).
    """
    text = resources.files(__name__).joinpath(f"{name}.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
