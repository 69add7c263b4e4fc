"""The drawings by themselves: what an image shows cannot be asked where it is shown."""

import base64

import pytest

from tests.renderers.layout import layout_problems, problems_by_width
from tests.renderers.notebooks import PLANS
from tests.support.devtools import headless_page
from tests.support.html_pages import parse_page
from tests.support.renderings import plan_fragment, plan_page


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_drawings_are_laid_out(tmp_path, chromium, dark):
    problems: list[str] = []
    grounds = set()
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    with headless_page(chromium, tmp_path) as page:
        for name, plan in PLANS.items():
            for index, image in enumerate(parse_page(plan_fragment(plan)).all("img")):
                file = tmp_path / f"{name}-{index}.svg"
                file.write_bytes(base64.b64decode(image["src"].partition(",")[2]))
                page.load(file, dark=dark)
                faults = layout_problems(page, "document.documentElement")
                problems += [f"{file.stem}: {problem}" for problem in faults]
                grounds.add(page.evaluate(ground))
    assert problems == []
    assert grounds == {"rgb(18, 23, 29)" if dark else "rgb(255, 255, 255)"}


def test_reports_are_laid_out(tmp_path, chromium):
    problems = []
    with headless_page(chromium, tmp_path) as page:
        for name, plan in PLANS.items():
            file = tmp_path / f"{name}.html"
            file.write_text(plan_page(plan), encoding="utf-8")
            page.load(file)
            main = "document.querySelector('main')"
            problems += problems_by_width(page, main, name, steady_from=0)
    assert problems == []
