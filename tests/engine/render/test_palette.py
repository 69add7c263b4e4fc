"""Colours can be told apart by people with any kind of colour blindness, and text can be read."""

import itertools
import math

import pytest

from kfp_placement_engine.render.palette import FILLS, THEMES, PlaceColours

LIGHT, DARK = ({name: pair[at] for name, pair in THEMES.items()} for at in (0, 1))

# Machado, Oliveira, Fernandes 2009: full protanopia, deuteranopia, tritanopia, on linear sRGB.
VISION = {
    "normal": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779),
        (-0.078411, 0.930809, 0.147602),
        (0.004733, 0.691367, 0.303900),
    ),
}
OKABE_ITO_DISTANCE = 0.076
"""Least OKLab distance within the widely used Okabe-Ito palette (without black), same test."""


def linear(colour):
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]


def seen(colour, matrix):
    rgb = linear(colour)
    return [min(max(sum(a * b for a, b in zip(row, rgb, strict=True)), 0), 1) for row in matrix]


def oklab(rgb):
    r, g, b = rgb
    long = (0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b) ** (1 / 3)
    middle = (0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b) ** (1 / 3)
    short = (0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b) ** (1 / 3)
    return (
        0.2104542553 * long + 0.7936177850 * middle - 0.0040720468 * short,
        1.9779984951 * long - 2.4285922050 * middle + 0.4505937099 * short,
        0.0259040371 * long + 0.7827717662 * middle - 0.8086757660 * short,
    )


def contrast(one, other):
    """As WCAG 2 defines it."""
    dark, bright = sorted(
        sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear(colour), strict=True))
        for colour in (one, other)
    )
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("matrix", VISION.values(), ids=VISION)
def test_fills_are_as_far_apart_as_those_of_okabe_and_ito(matrix):
    points = [oklab(seen(fill, matrix)) for fill, _ in FILLS]
    least = min(math.dist(a, b) for a, b in itertools.combinations(points, 2))
    assert least >= OKABE_ITO_DISTANCE - 0.002


@pytest.mark.parametrize(("fill", "ink"), FILLS)
def test_text_on_a_fill_can_be_read(fill, ink):
    assert contrast(fill, ink) >= 4.5


@pytest.mark.parametrize(("fill", "_ink"), FILLS)
def test_fills_stand_out_in_both_themes(fill, _ink):
    # Bars and boxes have an outline besides; amber on white, as in every palette, needs it.
    assert contrast(fill, DARK["card"]) >= 3
    assert contrast(fill, LIGHT["card"]) >= 2.2


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_all_text_can_be_read(theme):
    for ink in ("ink", "muted", "accent", "good", "bad", "warn"):
        for back in ("page", "card"):
            assert contrast(theme[ink], theme[back]) >= 4.5, (ink, back)
    for kind in ("bad", "warn"):
        assert contrast(theme[kind], theme[f"{kind}-back"]) >= 4.5
        assert contrast(theme["ink"], theme[f"{kind}-back"]) >= 7
        assert contrast(theme["muted"], theme[f"{kind}-back"]) >= 4.5
    assert contrast(theme["edge"], theme["card"]) >= 3


def test_nodes_take_fills_in_turn():
    colours = PlaceColours([f"node-{index}" for index in range(9)])
    assert colours.css_class("node-0") == colours.css_class("node-8") == "n0"
    assert colours.css_class("node-7") == "n7"
    assert colours.css_class("") == colours.css_class("gone") == "n-none"
    assert colours.repeat
    assert not PlaceColours(["a"]).repeat
