"""The notebook view in what nbconvert makes of a notebook: a page that anybody may be sent."""

import pytest
from nbconvert import HTMLExporter

from tests.renderers.jupyter import notebook_of
from tests.renderers.layout import STEADY, WIDTHS, layout_problems
from tests.renderers.notebooks import PLANS
from tests.support.devtools import headless_page
from tests.support.renderings import plan_fragment

pytestmark = [
    pytest.mark.browser,
    # Theirs: jinja and mistune are called in ways that they will not be for long.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

OUTPUTS = {"lab": ".jp-OutputArea-output", "classic": ".output_subarea"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("template", OUTPUTS)
def test_the_view_is_laid_out(tmp_path, chromium, template, theme):
    exporter = HTMLExporter(template_name=template, theme=theme)
    root = f"document.querySelector('{OUTPUTS[template]}')"
    problems: dict[str, list[str]] = {}
    with headless_page(chromium, tmp_path) as page:
        for name, plan in PLANS.items():
            file = tmp_path / f"{name}.html"
            file.write_text(exporter.from_notebook_node(notebook_of(plan_fragment(plan)))[0])
            page.load(file, dark=theme == "dark")
            for width in WIDTHS:
                page.resize(width=width, dark=theme == "dark")
                found = layout_problems(page, root, steady=width >= STEADY)
                problems[f"{name}, {width}"] = found
            assert not [url for url in page.requests if "attack" in url]
    assert {key: found for key, found in problems.items() if found} == {}
