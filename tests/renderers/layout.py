"""Whether a view is laid out as it should, asked in the browser that shows it."""

import json
from pathlib import Path
from typing import Any

from tests.support.devtools import Page

WIDTHS = (700, 930, 1400)
"""Of the window, in pixels: half a screen, a small one, a large one."""

STEADY = 930
"""From this width of the window on, tables do not scroll sideways."""

_LAYOUT = (Path(__file__).parent / "layout.js").read_text("utf-8")


def layout_problems(page: Page, root: str, *, steady: bool = False) -> list[str]:
    """What is wrong with the element that a JavaScript expression names; it must hold some text."""
    answer: dict[str, Any] = json.loads(
        page.evaluate(f"JSON.stringify(({_LAYOUT})({root}, {json.dumps(steady)}))")
    )
    problems: list[str] = answer["problems"]
    return problems if answer["texts"] else [*problems, "there is no text at all"]
