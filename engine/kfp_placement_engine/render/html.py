"""Documents as one HTML page, and as a fragment for a notebook; both without scripts.

Every style is scoped to one class, so that a fragment changes nothing else on the page it is put
into; a page forbids itself everything but its own styles.

A notebook brings styles of its own for tables, lists and images (JupyterLab, VS Code, nbconvert);
the fragment's win by naming their class three times. One that is not trusted drops all of them and
`svg`, but shows images, also those that are part of the page. So a notebook gets its drawings as
images; a page gets SVG, whose parts say more where the reader points at them.
"""

from collections import defaultdict
from functools import cache
from typing import NamedTuple

from markupsafe import Markup

from kfp_placement_engine.render.drawing import Drawing, drawing_style
from kfp_placement_engine.render.environment import read_style, template
from kfp_placement_engine.render.graph import draw_graph
from kfp_placement_engine.render.palette import PlaceColours, colour_rules, theme_rules
from kfp_placement_engine.render.time_line import draw_time_line
from kfp_placement_engine.views.document import Document, Part, Table
from kfp_placement_engine.views.drawings import Graph, TimeLine

_SCOPE = ".kfp-placement"
"""The element that holds everything; each selector of the style sheet starts with it."""

_STRONG = _SCOPE * 3

TIME_LINE_ON_PAGE = 1100.0
"""Width of a time line on a page, in pixels."""

TIME_LINE_IN_NOTEBOOK = 690.0
"""Width of a time line in a notebook, in pixels."""


class _Medium(NamedTuple):
    """Kind of place in which a document is shown.

    Attributes:
        template_name: name of the template.
        room: pixels for a drawing on a wide screen.
        time_line: width of a time line, in pixels.
        tooltips: whether parts of drawings say more where the reader points at them.
    """

    template_name: str
    room: float
    time_line: float
    tooltips: bool


_PAGE = _Medium("page.html.j2", 1198.0, TIME_LINE_ON_PAGE, tooltips=True)
_NOTEBOOK = _Medium("fragment.html.j2", 760.0, TIME_LINE_IN_NOTEBOOK, tooltips=False)


class _PageColumn(NamedTuple):
    """Column of a table that has room of its own on a page.

    Attributes:
        place: place of the column in the table.
        percent: share of the table's width.
        below: places of the columns whose cells are small lines below this one's.
    """

    place: int
    percent: int
    below: list[int]


def html_page(document: Document) -> str:
    """Return one self-contained page: nothing is loaded from anywhere."""
    return _rendered(_PAGE, document, _page_style()) + "\n"


def html_fragment(document: Document) -> str:
    """Return a fragment, for `_repr_html_`."""
    return _rendered(_NOTEBOOK, document, _notebook_style())


def _rendered(medium: _Medium, document: Document, style: Markup) -> str:
    colours = PlaceColours(document.places)
    parts = [
        (part, _drawn(part, colours, medium.time_line), _page_columns(part))
        for part in document.parts
    ]
    return template(medium.template_name).render(
        document=document,
        parts=parts,
        colours=colours,
        style=style,
        tooltips=medium.tooltips,
        room=medium.room,
    )


@cache
def _page_style() -> Markup:
    sheets = "".join(map(read_style, ("view.css", "page.css")))
    return Markup(colour_rules(_SCOPE) + drawing_style() + sheets)


@cache
def _notebook_style() -> Markup:
    own = read_style("view.css").replace(_SCOPE, _STRONG)
    return Markup(colour_rules(_STRONG) + theme_rules(_STRONG) + own)


def _drawn(part: Part, colours: PlaceColours, width: float) -> Drawing | None:
    if isinstance(part, TimeLine):
        return draw_time_line(part, colours, width)
    return draw_graph(part, colours) if isinstance(part, Graph) else None


def _page_columns(part: Part) -> list[_PageColumn] | None:
    """Return the columns of a table that have room of their own; None for another part.

    Their shares are fixed: no name, however long, makes a table wider than its place.
    """
    if not isinstance(part, Table):
        return None
    at = {column.title: index for index, column in enumerate(part.columns)}
    # Columns that have room of their own are below None.
    below: dict[int | None, list[int]] = defaultdict(list)
    for column in part.columns:
        below[at.get(column.under)].append(at[column.title])
    weights = {
        index: 3 if part.columns[index].is_path or part.columns[index].wrap_from else 2
        for index in below[None]
    }
    whole = sum(weights.values())
    return [
        _PageColumn(index, 100 * weight // whole, below[index]) for index, weight in weights.items()
    ]
