"""Whether a view is laid out as it should, asked in the browser that shows it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.devtools import Page

WIDTHS = (700, 930, 1400)
"""Widths of the window, in pixels: half a screen, a small one, a large one."""

STEADY = 930
"""Width of the window from which on tables do not scroll sideways."""

_LAYOUT = (Path(__file__).parent / "layout.js").read_text("utf-8")


def layout_problems(page: Page, root: str, *, steady: bool = False) -> list[str]:
    """What is wrong with the element that a JavaScript expression names; it must hold some text."""
    answer: dict[str, Any] = json.loads(
        page.evaluate(f"JSON.stringify(({_LAYOUT})({root}, {json.dumps(steady)}))")
    )
    problems: list[str] = answer["problems"]
    return problems if answer["texts"] else [*problems, "there is no text at all"]


def problems_by_width(
    page: Page,
    root: str,
    label: str,
    resize: Callable[[int], object] | None = None,
    *,
    steady_from: int = STEADY,
) -> list[str]:
    """What is wrong with an element at each width of the window.

    Args:
        page: where it is.
        root: JavaScript expression for it.
        label: what it is, to be told beside the problems.
        resize: gives the window another width and waits until the element has followed.
        steady_from: from this width on, tables must not scroll sideways.
    """
    labelled = []
    for width in WIDTHS:
        (resize or (lambda pixels: page.resize(width=pixels)))(width)
        problems = layout_problems(page, root, steady=width >= steady_from)
        labelled += [f"{label}, {width}: {problem}" for problem in problems]
    return labelled
