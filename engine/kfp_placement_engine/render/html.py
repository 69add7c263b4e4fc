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

_PAGE_PIXELS, _NOTEBOOK_PIXELS = 1198.0, 760.0
"""Room for a drawing on a wide screen."""

TIME_LINE_ON_PAGE, TIME_LINE_IN_NOTEBOOK = 1100.0, 690.0
"""Width of a time line, in pixels."""


def html_page(document: Document) -> str:
    """One self-contained page: nothing is loaded from anywhere."""
    return _rendered("page.html.j2", document, _page_style(), tooltips=True) + "\n"


def html_fragment(document: Document) -> str:
    """Return a fragment, for `_repr_html_`."""
    return _rendered("fragment.html.j2", document, _notebook_style(), tooltips=False)


def _rendered(name: str, document: Document, style: Markup, *, tooltips: bool) -> str:
    colours = PlaceColours(document.places)
    width = TIME_LINE_ON_PAGE if tooltips else TIME_LINE_IN_NOTEBOOK
    return template(name).render(
        document=document,
        parts=[
            (part, _drawn(part, colours, width), _page_columns(part)) for part in document.parts
        ],
        colours=colours,
        style=style,
        tooltips=tooltips,
        room=_PAGE_PIXELS if tooltips else _NOTEBOOK_PIXELS,
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


def _page_columns(part: Part) -> list[tuple[int, int, list[int]]] | None:
    """Columns of a table that have room of their own: which, how many per cent, what is below them.

    Columns of fixed shares: no name, however long, makes a table wider than its place.
    """
    if not isinstance(part, Table):
        return None
    at = {column.title: index for index, column in enumerate(part.columns)}
    below: dict[int, list[int]] = defaultdict(list)
    for column in part.columns:
        below[at.get(column.under, -1)].append(at[column.title])
    weights = {
        index: 3 if part.columns[index].is_path or part.columns[index].wrap_from else 2
        for index in below[-1]
    }
    whole = sum(weights.values())
    return [(index, 100 * weight // whole, below[index]) for index, weight in weights.items()]
