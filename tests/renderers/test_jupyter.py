"""The notebook view in JupyterLab and Notebook 7, trusted and not."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.views.formatting import visible
from kfp_placement_engine.views.plans.comparison import difference_text, makespan
from tests.renderers.jupyter import OUTPUT, jupyter_server, notebook_of
from tests.renderers.layout import WIDTHS, layout_problems, problems_by_width
from tests.renderers.notebooks import PLANS
from tests.support.devtools import Page, headless_page
from tests.support.renderings import plan_fragment

pytestmark = pytest.mark.slow

BEFORE = Path(__file__).parent / "data/view_before.html"
"""The view before it was mended: JupyterLab's styles won."""

NOTEBOOKS = {name: notebook_of(plan_fragment(plan)) for name, plan in PLANS.items()}


@pytest.mark.parametrize("trusted", [True, False], ids=["trusted", "untrusted"])
@pytest.mark.parametrize("classic", [False, True], ids=["lab", "notebook"])
def test_the_view_is_laid_out(tmp_path, chromium, classic, trusted):
    folder = tmp_path / "jupyter"
    problems: list[str] = []
    with (
        jupyter_server(folder, NOTEBOOKS, trusted=trusted) as server,
        headless_page(chromium, tmp_path) as page,
    ):
        for name in NOTEBOOKS:
            page.resize(width=WIDTHS[-1])
            server.show(page, name, classic=classic)
            assert page.evaluate(f"{OUTPUT}.querySelector('style') !== null") is trusted
            assert missing_words(page.evaluate(f"{OUTPUT}.textContent"), PLANS[name]) == []
            for theme in ("light", "dark"):
                server.set_theme(page, dark=theme == "dark")
                problems += problems_by_width(page, OUTPUT, f"{name}, {theme}", followed(page))
            assert not [url for url in page.requests if "attack" in url]
    assert problems == []


def followed(page: Page) -> Callable[[int], None]:
    """Change the window's width, and wait until the output has followed it."""

    def resize(width: int) -> None:
        page.resize(width=width)
        page.settle(f"{OUTPUT}.clientWidth")

    return resize


def missing_words(text: str, plan: Plan) -> list[str]:
    """What a reader of the bare text would not find: the result, and each step with its node."""
    verdicts = [difference_text(plan, each) for each in [*plan.comparison.baselines.values()][:1]]
    names = [name for step in plan.steps for name in (step.name, step.node or "")]
    # Longer names are shortened.
    shown = [visible(name) for name in names if len(name) < 100]
    wanted = " ".join([makespan(plan.figures), *verdicts, *shown]).split()
    return sorted(set(wanted) - set(text.split()))


def test_the_view_of_before_is_found_to_be_broken(tmp_path, chromium):
    before = {"before": notebook_of(BEFORE.read_text("utf-8"))}
    with (
        jupyter_server(tmp_path / "jupyter", before, trusted=True) as server,
        headless_page(chromium, tmp_path) as page,
    ):
        server.show(page, "before")
        for width in WIDTHS:
            page.resize(width=width)
            problems = layout_problems(page, OUTPUT)
            assert len([each for each in problems if each.startswith("overlap")]) >= 3
