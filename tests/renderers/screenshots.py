"""The pictures of the documentation: `make screenshots` writes them, a test holds one to the code.

The lead case as a time line, and its preview in JupyterLab, light and dark.
"""

import tempfile
from pathlib import Path

from kfp_placement.cli.commands.demo_stories import unequal_steps
from kfp_placement_engine.plans.plan import Plan
from kfp_placement_engine.render.html import TIME_LINE_IN_NOTEBOOK
from kfp_placement_engine.render.palette import PlaceColours
from kfp_placement_engine.render.text import TextStyle
from kfp_placement_engine.render.time_line import draw_time_line
from kfp_placement_engine.views.plans.detail import NOTEBOOK
from kfp_placement_engine.views.plans.time_line import places, plan_time_line
from tests.renderers.jupyter import NO_DIALOG, jupyter_server, notebook_of
from tests.support.browser import find_chromium
from tests.support.checkout import ROOT
from tests.support.devtools import Page, headless_page
from tests.support.renderings import plan_fragment

PICTURES = ROOT / "docs/pictures"
TIME_LINE = PICTURES / "lead-case.svg"

_WIDTH, _HEIGHT = 1000, 1300


def lead_case() -> Plan:
    """The plan of the demo, found in the same way on every machine."""
    options = {"generations": 60, "seed": 0}
    return unequal_steps(options, TextStyle(), lambda *_: None).plan


def time_line(plan: Plan) -> str:
    """Plan and default scheduler, as a file of its own."""
    view, colours = plan_time_line(plan, NOTEBOOK), PlaceColours(places(plan))
    return draw_time_line(view, colours, TIME_LINE_IN_NOTEBOOK).standalone()


def _photograph(page: Page, plan: Plan, folder: Path) -> None:
    notebook = notebook_of(plan_fragment(plan), 'preview(unequal_steps, "cluster.yaml")')
    with jupyter_server(folder, {"unequal-steps": notebook}, trusted=True) as server:
        page.resize(width=_WIDTH, height=_HEIGHT)
        server.show(page, "unequal-steps")
        page.evaluate("jupyterapp.commands.execute('application:toggle-left-area').then(() => 1)")
        for theme in ("light", "dark"):
            server.set_theme(page, dark=theme == "dark")
            page.wait_for(NO_DIALOG)
            page.screenshot(PICTURES / f"notebook-{theme}.png")


def main() -> None:
    """Write all pictures."""
    chromium = find_chromium()
    assert chromium is not None, "no Chromium found: install chromium, or name one in CHROMIUM"
    plan = lead_case()
    PICTURES.mkdir(exist_ok=True)
    TIME_LINE.write_text(time_line(plan) + "\n", encoding="utf-8")
    with (
        # Processes of Chromium may write for a moment after it has ended.
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        headless_page(chromium, Path(folder) / "browser") as page,
    ):
        _photograph(page, plan, Path(folder) / "jupyter")
    print("\n".join(sorted(map(str, PICTURES.iterdir()))))


if __name__ == "__main__":
    main()
