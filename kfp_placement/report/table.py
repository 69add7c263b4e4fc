"""How tables of live runs are printed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TableStyle:
    """How to print.

    Attributes:
        wide: all columns, with the reason of every step.
        columns: width of the terminal; None: as wide as the text is (a file or a pipe).
        colour: escape sequences for bold, dim, red and yellow.
    """

    wide: bool = False
    columns: int | None = None
    colour: bool = False
