"""Colours of places, such as nodes.

Eight fills that people with any kind of colour blindness can tell apart, each with the text colour
that reads best on it; both are the same in light and dark. A test computes the distances and
contrasts. Colour is never the only sign: rows and boxes carry the place's name.
"""

from collections.abc import Sequence

from kfp_placement_engine.views.document import Tone

FILLS: tuple[tuple[str, str], ...] = (
    ("#648fff", "#0b0f14"),
    ("#e69f00", "#0b0f14"),
    ("#0f766e", "#ffffff"),
    ("#dc267f", "#ffffff"),
    ("#785ef0", "#ffffff"),
    ("#8a5a00", "#ffffff"),
    ("#cc79a7", "#0b0f14"),
    ("#e8743b", "#0b0f14"),
)
"""Fill and the colour of text on it."""

NEUTRAL = "#7d8796"
"""Colour that no place has, and that is visible on light and dark ground."""

THEMES: dict[str, tuple[str, str]] = {
    "page": ("#f5f6f8", "#0b0e13"),
    "card": ("#ffffff", "#12171d"),
    "ink": ("#14181f", "#eceff4"),
    "muted": ("#565f6d", "#9aa5b5"),
    "line": ("#dfe3e8", "#2a323d"),
    "grid": ("#e8ebef", "#222a34"),
    "edge": ("#7d8796", "#6f7b8c"),
    "accent": ("#1f4fc4", "#8fb0ff"),
    "good": ("#0b6b4f", "#5fd3aa"),
    "warn": ("#8a4b00", "#ffc46b"),
    "warn-back": ("#fff6e5", "#2a2113"),
    "bad": ("#b3123c", "#ff8fa6"),
    "bad-back": ("#ffeef1", "#311820"),
    "hatch": ("#14181f", "#0b0e13"),
}
"""Colours of all else, on light and on dark ground."""


class PlaceColours:
    """Assignment of fills to places: in order, and again from the first after the last."""

    def __init__(self, places: Sequence[str]) -> None:
        self._index = {place: index % len(FILLS) for index, place in enumerate(places)}
        self.repeat = len(places) > len(FILLS)

    def css_class(self, place: str) -> str:
        """Return the class that sets `--fill` and `--on`; grey for unknown places."""
        return f"n{self._index[place]}" if place in self._index else "n-none"

    def fill(self, place: str) -> str:
        """Return the fill of a place."""
        return FILLS[self._index[place]][0] if place in self._index else NEUTRAL

    def bar(self, tone: Tone) -> str:
        """Return the colour of a bar in a table."""
        return FILLS[0][0] if tone is Tone.STRONG else NEUTRAL


def colour_rules(scope: str) -> str:
    """Return the variables of colours: light, and dark where the reader's system asks for it.

    An image in a page asks for what the page around it says, as `color-scheme`.
    """
    light, dark = _theme(scope, "light"), _theme(scope, "dark")
    return f"{light}@media (prefers-color-scheme:dark){{{dark}}}"


def theme_rules(scope: str) -> str:
    """Return the variables of colours by the theme of JupyterLab or VS Code."""
    return "".join(
        _theme(f'body[data-jp-theme-light="{light}"] {scope},body.vscode-{name} {scope}', name)
        for light, name in (("true", "light"), ("false", "dark"))
    )


def fill_rules(scope: str) -> str:
    """Return the classes of places within a drawing."""
    return "".join(
        f"{scope} .n{index}{{--fill:{fill};--on:{on}}}" for index, (fill, on) in enumerate(FILLS)
    )


def _theme(selector: str, name: str) -> str:
    variables = "".join(
        f"--{key}:{dark if name == 'dark' else light};" for key, (light, dark) in THEMES.items()
    )
    return f"{selector}{{{variables}color-scheme:{name}}}"
