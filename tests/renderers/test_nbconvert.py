"""The notebook view in what nbconvert makes of a notebook: a page that anybody may be sent."""

import pytest
from nbconvert import HTMLExporter

from tests.renderers.jupyter import notebook_of
from tests.renderers.layout import problems_by_width
from tests.renderers.notebooks import PLANS
from tests.support.devtools import headless_page
from tests.support.renderings import plan_fragment

pytestmark = [
    # Theirs: jinja and mistune are called in ways that they will not be for long.
    pytest.mark.filterwarnings("ignore::DeprecationWarning")
]

OUTPUTS = {"lab": ".jp-OutputArea-output", "classic": ".output_subarea"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("template", OUTPUTS)
def test_the_view_is_laid_out(tmp_path, chromium, template, theme):
    exporter = HTMLExporter(template_name=template, theme=theme)
    root = f"document.querySelector('{OUTPUTS[template]}')"
    problems = []
    with headless_page(chromium, tmp_path) as page:
        for name, plan in PLANS.items():
            file = tmp_path / f"{name}.html"
            file.write_text(exporter.from_notebook_node(notebook_of(plan_fragment(plan)))[0])
            page.load(file, dark=theme == "dark")
            problems += problems_by_width(
                page, root, name, lambda width: page.resize(width=width, dark=theme == "dark")
            )
            assert not [url for url in page.requests if "attack" in url]
    assert problems == []
