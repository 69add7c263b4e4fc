"""The pictures of the documentation are those of the code; nothing is written."""

from pathlib import Path

from tests.renderers.screenshots import PICTURES, TIME_LINE, lead_case, time_line
from tests.support.html_pages import parse_page


def test_the_lead_case_is_drawn_as_it_is_planned():
    assert TIME_LINE.read_text("utf-8") == time_line(lead_case()) + "\n", "make screenshots"


def test_the_lead_case_says_what_it_shows():
    texts = parse_page(TIME_LINE.read_text("utf-8")).text
    assert "This plan: 29m2s" in texts
    assert any(text.startswith("The default scheduler: 40m38s") for text in texts)


def test_every_picture_is_there():
    names = {file.name for file in Path(PICTURES).iterdir()}
    assert names == {"lead-case.svg", "notebook-light.png", "notebook-dark.png"}
