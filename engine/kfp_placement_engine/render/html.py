"""Documents as one HTML page, and as a fragment for a notebook; both without scripts.

Every style is scoped to one class, so that a fragment changes nothing else on the page it is put
into; a page forbids itself everything but its own styles.

A notebook brings styles of its own for tables, lists and images (JupyterLab, VS Code, nbconvert);
the fragment's win by naming their class three times. One that is not trusted drops all of them and
`svg`, but shows images, also those that are part of the page. So a notebook gets its drawings as
images; a page gets SVG, whose parts say more where the reader points at them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from markupsafe import Markup

from kfp_placement_engine.render.drawing import Drawing, drawing_style
from kfp_placement_engine.render.environment import read_style, template
from kfp_placement_engine.render.graph import draw_graph
from kfp_placement_engine.render.palette import PlaceColours, colour_rules, theme_rules
from kfp_placement_engine.render.time_line import draw_time_line
from kfp_placement_engine.views.document import (
    Cell,
    Column,
    Document,
    Part,
    Row,
    Table,
    Tone,
)
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
    """A fragment, for `_repr_html_`."""
    return _rendered("fragment.html.j2", document, _notebook_style(), tooltips=False)


@dataclass(frozen=True)
class PageRow:
    """A row as a page shows it.

    Attributes:
        tone: of the whole row.
        cells: what each column shows large, and the small lines below it with their tones.
        items: rows that it sums up.
    """

    tone: Tone
    cells: list[tuple[str | Cell, list[tuple[str, Tone]]]]
    entries: list["PageRow"]


def _rendered(name: str, document: Document, style: Markup, *, tooltips: bool) -> str:
    colours = PlaceColours(document.places)
    parts = [
        (part, _drawing(part, colours, is_page=tooltips), _page_table(part))
        for part in document.parts
    ]
    room = _PAGE_PIXELS if tooltips else _NOTEBOOK_PIXELS
    return template(name).render(
        document=document,
        parts=parts,
        colours=colours,
        style=style,
        tooltips=tooltips,
        room=room,
    )


@cache
def _page_style() -> Markup:
    sheets = "".join(map(read_style, ("view.css", "page.css")))
    return Markup(colour_rules(_SCOPE) + drawing_style() + sheets)


@cache
def _notebook_style() -> Markup:
    own = read_style("view.css").replace(_SCOPE, _STRONG)
    return Markup(colour_rules(_STRONG) + theme_rules(_STRONG) + own)


def _drawing(part: Part, colours: PlaceColours, *, is_page: bool) -> Drawing | None:
    if isinstance(part, TimeLine):
        width = TIME_LINE_ON_PAGE if is_page else TIME_LINE_IN_NOTEBOOK
        return draw_time_line(part, colours, width)
    return draw_graph(part, colours) if isinstance(part, Graph) else None


def _page_table(part: Part) -> tuple[list[tuple[Column, int]], list[PageRow]] | None:
    """Columns with their shares of the width in per cent, and rows; some columns are joined.

    Columns of fixed shares: no name, however long, makes a table wider than its place.
    """
    if not isinstance(part, Table):
        return None
    titles = {column.title for column in part.columns}
    own = [column for column in part.columns if column.under not in titles]
    weights = [3 if column.is_path or column.wrap_from else 2 for column in own]
    columns = [
        (column, 100 * weight // sum(weights)) for column, weight in zip(own, weights, strict=True)
    ]
    return columns, [_page_row(part.columns, own, row) for row in part.rows]


def _page_row(columns: Sequence[Column], own: Sequence[Column], row: Row) -> PageRow:
    cells: dict[str, tuple[str | Cell, list[tuple[str, Tone]]]] = {}
    for column, cell in zip(columns, row.cells, strict=True):
        if column in own:
            cells[column.title] = (cell, [])
    for column, cell in zip(columns, row.cells, strict=True):
        if column not in own and str(cell):
            tone = cell.tone if isinstance(cell, Cell) else Tone.PLAIN
            cells[column.under][1].append((column.reads.format(cell), tone))
    items = [_page_row(columns, own, item) for item in row.items]
    return PageRow(row.tone, list(cells.values()), items)
