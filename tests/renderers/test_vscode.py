"""The notebook view in VS Code, in a workspace that is trusted; Restricted Mode shows no output."""

import os

import pytest

from tests.renderers.jupyter import notebook_of
from tests.renderers.layout import STEADY, WIDTHS, layout_problems
from tests.renderers.notebooks import PLANS
from tests.renderers.vscode import OUTPUT, vscode_server
from tests.support.devtools import headless_page
from tests.support.renderings import plan_fragment

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("VSCODE") != "yes",
        reason="it needs a VS Code server from npm: make test-vscode",
    ),
]


def test_the_view_is_laid_out(tmp_path, chromium):
    notebooks = {name: notebook_of(plan_fragment(plan)) for name, plan in PLANS.items()}
    problems: dict[str, list[str]] = {}
    with (
        vscode_server(tmp_path / "vscode", notebooks) as server,
        headless_page(chromium, tmp_path) as page,
    ):
        page.resize(width=WIDTHS[-1])
        server.start(page)
        for name in notebooks:
            page.resize(width=WIDTHS[-1])
            server.show(page, name)
            for dark in (False, True):
                server.set_theme(page, dark=dark)
                for width in WIDTHS:
                    server.resize(page, width)
                    found = layout_problems(page, OUTPUT, steady=width >= STEADY)
                    problems[f"{name}, {width} {'dark' if dark else 'light'}"] = found
            assert not [url for url in page.requests if "attack" in url]
    assert {key: found for key, found in problems.items() if found} == {}
