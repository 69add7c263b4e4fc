"""Templates and style sheets, and how whatever is filled into a template is made safe."""

import re
from functools import cache
from importlib import resources

from jinja2 import Environment, PackageLoader, Template
from markupsafe import Markup, escape

from kfp_placement_engine.views.formatting import shown

NAME_CHARACTERS = 120
"""Characters shown of a name; Kubernetes' own names end at 63 or 253."""

TEXT_CHARACTERS = 600
"""Characters of a string that are shown."""

SENTENCE_CHARACTERS = 2000
"""Characters shown of what may be several sentences."""

_LONG_DURATION = re.compile(r"(?<![\w.])(?:\d+[dhm]){2,}\d+[ms](?!\w)")
_LONG_WORD = re.compile(rf"{_LONG_DURATION.pattern}|[^\s-]{{21,}}")
_LONG_IN_NAME = re.compile(r"[^\s-]{11,}")
"""Text that a browser never breaks on its own, and that may be too long for a narrow cell."""

_UNIT = re.compile(r"\d+[dhms]")
_PIECE = re.compile(r"[^._:/]{1,5}[._:/]?|[._:/]")


def template(name: str) -> Template:
    """Return a template that escapes and shortens whatever is filled in."""
    return _environment().get_template(name)


def read_style(name: str) -> str:
    """Read a style sheet, without what only people need."""
    text = resources.files(__package__).joinpath("templates", name).read_text("utf-8")
    return "".join(line.strip() for line in text.splitlines())


def coordinate(value: float) -> str:
    """Format a number of pixels, with a tenth."""
    return f"{value:.1f}".removesuffix(".0")


def plain(value: object, limit: int = TEXT_CHARACTERS) -> Markup:
    """Make text of strangers safe for an attribute or a drawing."""
    return escape(shown(str(value), limit))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("kfp_placement_engine.render"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finished,
    )
    environment.filters |= {
        "name": _name,
        "plain": plain,
        "sentence": lambda value: _breakable(shown(str(value), SENTENCE_CHARACTERS)),
    }
    return environment


def _finished(value: object) -> object:
    """Convert the value of an expression to HTML, in which long words break.

    Places to break are in the text: notebooks that are not trusted drop the style for it.
    """
    if isinstance(value, float):
        return coordinate(value)
    if isinstance(value, Markup):
        return value
    return _breakable(shown(str(value), TEXT_CHARACTERS))


def _name(value: object) -> Markup:
    """Make a name safe: one that is written from right to left leaves the rest in order."""
    text = _breakable(shown(str(value), NAME_CHARACTERS), _LONG_IN_NAME)
    return text if str(value).isascii() else Markup("<bdi>{}</bdi>").format(text)


def _breakable(text: str, long: re.Pattern[str] = _LONG_WORD) -> Markup:
    pieces, end = [], 0
    for word in long.finditer(text):
        pieces.append(escape(text[end : word.start()]))
        piece = _UNIT if _LONG_DURATION.fullmatch(word[0]) else _PIECE
        pieces.append(Markup("<wbr>").join(piece.findall(word[0])))
        end = word.end()
    return Markup("").join([*pieces, text[end:]])
