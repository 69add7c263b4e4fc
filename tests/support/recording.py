"""Keeps what tests see of the product, so that two commits can be compared; off unless asked for.

A test may move to another file: what it sees is kept under the name of its function.
"""

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

from hypothesis import currently_in_test_context

from tests.support.checkout import ROOT

FOLDER = "KFP_PLACEMENT_RECORD"
"""Environment variable: where to write; not set = nothing is kept."""
GENERATIONS = 20
"""Of a search while recording: a limit of time would make every record another one."""
LONGEST_BYTES = 2000

_FRAME = re.compile(r'(?m)^  (?:File "|  ).*\n')
"""A line of a traceback that says where."""


def keep(kind: str, **seen: Any) -> None:
    """Write down what the running test has just seen.

    Examples that Hypothesis draws depend on all that is imported: they are not kept.
    """
    folder = os.environ.get(FOLDER)
    if not folder or currently_in_test_context():
        return
    test = os.environ["PYTEST_CURRENT_TEST"].split("::", 1)[1].rsplit(" (", 1)[0]
    path = Path(folder) / (re.sub(r"[^\w.=-]+", "_", test)[:150] + ".jsonl")
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"kind": kind, **seen}, default=_plain) + "\n")


def plain(text: str, folder: Path) -> str:
    """Text without what differs from run to run: folders, ports, and where tracebacks lead."""
    text = text.replace(str(folder), "FOLDER").replace(str(ROOT), "TREE")
    text = re.sub(r"127\.0\.0\.1:\d+", "SERVER", text)
    return _FRAME.sub("", text) if "Traceback" in text else text


def counted(asked: Any) -> Any:
    """A planning round as asked, or while recording one that ends after some generations."""
    if not os.environ.get(FOLDER):
        return asked
    return replace(asked, options=replace(asked.options, generations=GENERATIONS))


def _plain(value: Any) -> Any:
    """What JSON does not know: bytes, cut where they are long."""
    if isinstance(value, bytes):
        rest = len(value) - LONGEST_BYTES
        shown = value[:LONGEST_BYTES].decode(errors="backslashreplace")
        return shown + (f" and {rest} bytes more" if rest > 0 else "")
    return str(value)
