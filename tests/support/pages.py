"""A page of the documentation as blocks: run as printed, and made into a notebook.

A block of `python` is code; what follows it as a block of `text` is what it prints, its last
expression included. Lines of a block of `console` that begin with `$` are commands, the others are
what these print. The comment `<!-- needs a cluster -->` before a block says that it is not run
where the page is.
"""

import ast
import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NEEDS_A_CLUSTER = "<!-- needs a cluster -->"

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+\))")
# How long a search took, and how far it came, differs from run to run.
_TOOK = re.compile(r"(?:\d+ (generations)|(tried)) in [\d.]+m?s")
_COLUMNS = "110"


@dataclass(frozen=True)
class Block:
    """A part of a page.

    Attributes:
        language: language of a fenced block, such as `python`; None = prose.
        text: contents of the block.
        needs_cluster: whether it needs a cluster; then it is not run where the page is.
    """

    language: str | None
    text: str
    needs_cluster: bool = False


def blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order; together they are the page."""
    end = 0
    for match in _FENCE.finditer(page):
        prose = page[end : match.start()]
        marked = prose.rstrip().endswith(NEEDS_A_CLUSTER)
        yield Block(None, prose)
        yield Block(match[1], match[2], marked)
        end = match.end()
    yield Block(None, page[end:])


def as_run(page: str, folder: Path) -> str:
    """The page with what its blocks print now, run one after another in a folder."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts = list(blocks(page))
    written = []
    for number, block in enumerate(parts):
        text = block.text
        if block.needs_cluster:
            pass
        elif block.language == "python":
            printed = _run_python(text, names, folder / f"cell_{number}.py")
        elif block.language == "text":
            text = _same(text, printed)
        elif block.language == "console":
            text = "".join(_run_command(line, folder) for line in _commands(text))
            text = _same(block.text, text)
        written.append(text if block.language is None else f"```{block.language}\n{text}```\n")
    return "".join(written)


def notebook(page: str, links: str) -> str:
    """The page as a Jupyter notebook without outputs.

    Args:
        page: the page.
        links: prefix of the page's relative links, as seen from the notebook.
    """
    cells = [_cell(block, links) for block in blocks(page)]
    document = {
        "cells": [cell for cell in cells if cell is not None],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def _cell(block: Block, links: str) -> dict[str, Any] | None:
    if block.language == "text":
        return None
    if block.language is None or block.needs_cluster or block.language == "":
        text = block.text.replace(NEEDS_A_CLUSTER, "").strip("\n")
        text = _LINK.sub(rf"\1{links}\2", text)
        if block.language is not None:
            text = f"```\n{text}\n```"
        return _of_kind("markdown", text) if text else None
    if block.language == "console":
        return _of_kind("code", "\n".join(f"!{line}" for line in _commands(block.text)))
    return _of_kind("code", block.text.rstrip("\n"))


def _of_kind(kind: str, text: str) -> dict[str, Any]:
    cell: dict[str, Any] = {
        "cell_type": kind,
        "id": hashlib.sha256(text.encode()).hexdigest()[:8],
        "metadata": {},
        "source": text.splitlines(keepends=True),
    }
    return cell | ({"execution_count": None, "outputs": []} if kind == "code" else {})


def _commands(text: str) -> list[str]:
    return [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]


def _run_python(code: str, names: dict[str, Any], file: Path) -> str:
    """Run a cell; what it prints, and the value of its last expression."""
    # KFP reads the source of components from their file.
    file.write_text(code)
    tree = ast.parse(code)
    last = tree.body[-1]
    value = ast.Expression(tree.body.pop().value) if isinstance(last, ast.Expr) else None  # type: ignore[attr-defined]
    printed = io.StringIO()
    before = Path.cwd()
    os.chdir(file.parent)
    try:
        with redirect_stdout(printed):
            exec(compile(tree, str(file), "exec"), names)
            if value is not None:
                result = eval(compile(value, str(file), "eval"), names)
                if result is not None:
                    print(repr(result))
    finally:
        os.chdir(before)
    return printed.getvalue()


def _run_command(line: str, folder: Path) -> str:
    """The line, and what its command prints.

    Raises:
        AssertionError: it fails.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": path, "COLUMNS": _COLUMNS, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    return f"$ {line}\n{done.stdout}"


def _same(shown: str, printed: str) -> str:
    """Return what a cell shows, unless it prints more than how long a search took.

    Of output that is shown in part, `...` stands for lines that are left out.
    """
    lines = iter(_masked(printed).splitlines())
    for line in _masked(shown).splitlines():
        if line.strip() != "..." and line.rstrip() not in (each.rstrip() for each in lines):
            return printed
    rest = [line for line in lines if line.strip()]
    complete = shown.rstrip().endswith("...") or not rest
    return shown if complete else printed


def _masked(text: str) -> str:
    return _TOOK.sub(r"\1\2 in ...", text)
