"""The text that people read in a file: comments, docstrings, messages, paragraphs of documents."""

import ast
import io
import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

_CODE_SPAN = re.compile(r"(`+).+?\1")
_FENCE = re.compile(r" *```")
# What precedes the text of a line: of a comment, a list, a quotation or a table.
_MARGIN = re.compile(r"^\s*(?:#+[:!]?|//+|/\*+|\*+(?!\*)|\||>|[-*+]|\d+\.)?\s*")
# Fewer words are a name or a fragment and not a sentence.
_LEAST_WORDS = 3


@dataclass(frozen=True)
class Passage:
    """Text that belongs together, on one line.

    Attributes:
        text: the text, without code and without line breaks.
        starts: positions in the text at which the lines of the file begin.
        lines: the numbers of these lines.
    """

    text: str
    starts: tuple[int, ...]
    lines: tuple[int, ...]

    def line_at(self, position: int) -> int:
        """The line of the file that holds a position of the text."""
        return self.lines[bisect_right(self.starts, position) - 1]


def passages(path: Path) -> Iterator[Passage]:
    """The passages of a file, by the form that its name states."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        yield from _of_python(text)
    else:
        yield from _of_lines(text, is_markdown=path.suffix == ".md")


def _of_python(source: str) -> Iterator[Passage]:
    for line, text in _strings(ast.parse(source)):
        if len(re.findall(r"[A-Za-z]{2,}", text)) >= _LEAST_WORDS:
            yield from _paragraphs((line + n, each) for n, each in enumerate(text.split("\n")))
    comments = [
        (token.start[0], _MARGIN.sub("", token.string))
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    ]
    yield from _paragraphs(comments)


def _strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield every string with its line; what an f-string computes is shown as `{}`."""
    parts: set[int] = set()
    for node in ast.walk(tree):
        # `ast.walk` goes from the outside in: an f-string comes before its parts.
        match node:
            case ast.JoinedStr(values=values):
                parts.update(map(id, values))
                yield node.lineno, "".join(map(_shown, values))
            case ast.Constant(value=str(text)) if id(node) not in parts:
                yield node.lineno, text


def _shown(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "{}"


def _of_lines(text: str, *, is_markdown: bool) -> Iterator[Passage]:
    lines = []
    in_code = False
    for number, line in enumerate(text.splitlines(), start=1):
        if is_markdown and _FENCE.match(line):
            in_code = not in_code
            lines.append((number, ""))
        elif not in_code:
            if line.lstrip().startswith(("|", "-", "*", "+")):
                lines.append((number, ""))
            lines.append((number, _MARGIN.sub("", line)))
    yield from _paragraphs(lines)


def _paragraphs(lines: Iterable[tuple[int, str]]) -> Iterator[Passage]:
    """Lines joined until one is empty or does not follow the one before."""
    kept: list[tuple[int, str]] = []
    for number, line in lines:
        if kept and (not line.strip() or number > kept[-1][0] + 1):
            yield _passage(kept)
            kept = []
        if line.strip():
            kept.append((number, line.strip()))
    if kept:
        yield _passage(kept)


def _passage(lines: list[tuple[int, str]]) -> Passage:
    starts = []
    text = ""
    for _, line in lines:
        starts.append(len(text))
        text += line + " "
    # Of the same length, so that positions stay those of the lines.
    text = _CODE_SPAN.sub(lambda match: "X" * len(match[0]), text)
    return Passage(text, tuple(starts), tuple(number for number, _ in lines))
