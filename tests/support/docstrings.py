"""Docstrings as a newcomer meets them: their first words, and those of the attributes they name."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

_ANSWERS = """
    above after again all also although always another any anybody anything are as at because before
    being below both but by can cannot could did do does each either else every few for from had has
    have here how if in into is it its least less like many may might more most much must neither
    never no nobody none nor not nothing of often on once only or other others our ours out over per
    same should since so some somebody something still such than that their them then there
    these they this those though to told too toward until unless under up was we were what whatever
    when whenever where wherever whether which while who whoever whom whose why will with within
    without would you your
"""
"""Words that begin an answer to a question nobody has asked, and not a name or a sentence."""

_FIRST_WORDS = frozenset(_ANSWERS.split())

_NOT_NOUNS = """
    adds applied asks begins builds called carries completes decides delete does finds follows gets
    give gives holds keeps likewise makes notified nowhere prints raised reads returns say says see
    searches sends stops takes tells theirs
"""
"""Words that begin what a thing does, where it is described, or what happens to it."""

_ENTRY_WORDS = (_FIRST_WORDS | frozenset(_NOT_NOUNS.split())) - {
    *("whether", "all", "another", "any", "every", "least", "none", "other")
}
"""Words that no entry begins with: it is a noun phrase, or says whether something holds."""

_SHAPE = re.compile(r"^\[[^\]]*\] ")
"""Shape of an array, before the noun phrase: `[A, R] `."""

_VERB = re.compile(r"(?i)^[a-z]+s (?:a|an|it|the|what|when|whether)\b")
"""Verb that may also be a noun: `draws the series`, but `draws of each mix`."""

_SECTION = re.compile(r"(?:Attributes|Args):\n((?:    +.*\n|\n)*)")
_ENTRY = re.compile(r"^    (\w[\w, ]*): *(.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Finding:
    """A docstring whose beginning makes sense only beside the code.

    Attributes:
        path: file that it is in.
        line: line of what it describes.
        text: first line of the docstring, or the entry of an attribute.
    """

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


def findings(path: Path) -> Iterator[Finding]:
    """Yield first lines and entries of a module that make sense only beside their code."""
    for line, text, is_entry in _docstrings(ast.parse(path.read_text("utf-8"))):
        first = text.strip().splitlines()[0]
        if _first_word(first) in _FIRST_WORDS or (is_entry and _is_not_a_noun_phrase(first)):
            yield Finding(path, line, first)
        for section in _SECTION.findall(text + "\n"):
            for names, entry in _ENTRY.findall(section):
                if _is_not_a_noun_phrase(_SHAPE.sub("", entry)):
                    yield Finding(path, line, f"{names}: {entry}")


def _is_not_a_noun_phrase(entry: str) -> bool:
    return _first_word(entry) in _ENTRY_WORDS or _VERB.match(entry) is not None


def _first_word(text: str) -> str:
    return re.findall(r"^(?:the (?=same\b))?(\w*)", text.strip().lower())[0]


def _docstrings(tree: ast.AST) -> Iterator[tuple[int, str, bool]]:
    """Yield the docstrings of modules, classes, functions, and those below assigned names.

    Yields:
        The line, the text, and whether it describes an assigned name as an entry does.
    """
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and (text := ast.get_docstring(node)):
            yield getattr(node, "lineno", 1), text, False
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in pairwise(node.body):
                match before, after:
                    case ast.Assign() | ast.AnnAssign(), ast.Expr(ast.Constant(str(text))):
                        yield after.lineno, text, True
                    case _:
                        pass
