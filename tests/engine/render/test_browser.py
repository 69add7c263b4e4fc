"""The report in a real browser: nothing complained about, nothing loaded, nothing cut off."""

import json

import pytest

from tests.support.devtools import headless_page
from tests.support.plans import a_plan, a_step, random_plan, renamed, taxi_plan, unplaced_step
from tests.support.renderings import plan_fragment, plan_page

EVIL = "<img src=x onerror=alert(1)>\"'&$(id)\x1b[31m" + "long-" * 60

PAGES = {
    "taxi": lambda: plan_page(taxi_plan()),
    "hundred": lambda: plan_page(random_plan(100, 12)),
    "large": lambda: plan_page(random_plan(1_600, 90)),
    "evil": lambda: plan_page(renamed(taxi_plan(), EVIL)),
    "unplaced": lambda: plan_page(a_plan(unplaced_step())),
}

# Text whose box is wider than what holds it, without a way to scroll there.
CUT_OFF = """
[...document.querySelectorAll('main *')].filter(
  e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible'
    && !e.classList.contains('kp-scroll')).map(e => e.outerHTML.slice(0, 200))
"""
TEXT_OUTSIDE_PICTURES = """
[...document.querySelectorAll('svg.time-line text, svg.graph text')].filter(t => {
  const inner = t.getBBox(), outer = t.ownerSVGElement.viewBox.baseVal;
  return inner.x < -1 || inner.x + inner.width > outer.width + 1
    || inner.y < -1 || inner.y + inner.height > outer.height + 1;
}).map(t => t.textContent)
"""
NAMES_BEYOND_BOXES = """
[...document.querySelectorAll('svg.graph g')].filter(g => {
  const box = g.querySelector('.box');
  return box && [...g.querySelectorAll('text')].some(
    t => t.getBBox().x + t.getBBox().width > box.getBBox().x + box.getBBox().width + 1);
}).map(g => g.textContent)
"""


@pytest.fixture(scope="module")
def browser_page(tmp_path_factory, chromium):
    with headless_page(chromium, tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize("width", [390, 1280], ids=["phone", "desktop"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_report(browser_page, tmp_path, name, dark, width):
    file = tmp_path / f"{name}.html"
    file.write_text(PAGES[name](), encoding="utf-8")
    browser_page.load(file, width=width, dark=dark)

    assert browser_page.problems == []
    assert browser_page.requests == [file.as_uri()]
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= width
    assert browser_page.evaluate(CUT_OFF) == []
    assert browser_page.evaluate(TEXT_OUTSIDE_PICTURES) == []
    assert browser_page.evaluate(NAMES_BEYOND_BOXES) == []
    page_colour, ink = json.loads(
        browser_page.evaluate(
            "JSON.stringify([getComputedStyle(document.querySelector('main')).backgroundColor,"
            " getComputedStyle(document.querySelector('main')).color])"
        )
    )
    assert (brightness(page_colour) < brightness(ink)) is dark

    picture = tmp_path / "page.png"
    browser_page.screenshot(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert picture.stat().st_size > 10_000


def chain(count):
    """A run whose graph is as many boxes wide."""
    return a_plan(
        *(
            a_step(f"step-{index}", depends_on=(f"step-{index - 1}",) if index else ())
            for index in range(count)
        )
    )


GRAPH_WIDTH = "document.querySelector('svg.graph').getBoundingClientRect().width"
ROOM = "document.querySelector('svg.graph').closest('.kp-scroll').clientWidth"
HINTS = "[...document.querySelectorAll('.kp-hint')].filter(e => e.offsetHeight > 0).length"


def test_a_graph_shrinks_to_its_card_before_it_scrolls(browser_page, tmp_path):
    file = tmp_path / "chain.html"
    file.write_text(plan_page(chain(8)), encoding="utf-8")
    browser_page.load(file)
    assert browser_page.evaluate(GRAPH_WIDTH) <= browser_page.evaluate(ROOM)
    assert browser_page.evaluate(HINTS) == 0

    file.write_text(plan_page(chain(30)), encoding="utf-8")
    browser_page.load(file)
    assert browser_page.evaluate(GRAPH_WIDTH) > browser_page.evaluate(ROOM)
    assert browser_page.evaluate(HINTS) == 1
    name_size = (
        "document.querySelector('.box-name').getBBox().height"
        " * document.querySelector('svg.graph').getScreenCTM().a"
    )
    assert browser_page.evaluate(name_size) > 7


@pytest.mark.parametrize("count", [2, 8, 30])
def test_a_printed_page_holds_the_whole_graph(browser_page, tmp_path, count):
    file = tmp_path / "chain.html"
    file.write_text(plan_page(chain(count)), encoding="utf-8")
    # A4 across, less its margins.
    browser_page.load(file, width=1030, height=700, printed=True)
    assert browser_page.evaluate(GRAPH_WIDTH) <= browser_page.evaluate(ROOM)
    assert browser_page.evaluate("document.documentElement.scrollWidth") <= 1030
    assert browser_page.evaluate(HINTS) == 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_notebook_follows_the_theme_of_jupyterlab(browser_page, tmp_path, theme):
    file = tmp_path / "cell.html"
    light = "true" if theme == "light" else "false"
    file.write_text(
        f'<!doctype html><meta charset="utf-8"><body data-jp-theme-light="{light}">'
        f'<p id="other">text of another cell</p>{plan_fragment(taxi_plan())}</body>',
        encoding="utf-8",
    )
    # The system says the opposite.
    browser_page.load(file, dark=theme == "light")
    ink = browser_page.evaluate("getComputedStyle(document.querySelector('.kfp-placement')).color")
    assert (brightness(ink) < 128) is (theme == "light")
    assert browser_page.evaluate("getComputedStyle(document.getElementById('other')).color") == (
        "rgb(0, 0, 0)"
    )
    assert browser_page.problems == []


def test_a_policy_that_is_broken_would_be_noticed(browser_page, tmp_path):
    file = tmp_path / "bad.html"
    source = plan_page(taxi_plan()).replace("<main", '<script>1</script><img src="x.png"><main')
    file.write_text(source, encoding="utf-8")
    browser_page.load(file)
    assert len(browser_page.problems) >= 2


def brightness(colour):
    return sum(int(part) for part in colour.strip("rgba()").split(",")[:3]) / 3
