"""The notebook view in VS Code, in a workspace that is trusted; Restricted Mode shows no output."""

import os
from functools import partial

import pytest

from tests.renderers.jupyter import notebook_of
from tests.renderers.layout import WIDTHS, problems_by_width
from tests.renderers.notebooks import PLANS
from tests.renderers.vscode import OUTPUT, vscode_server
from tests.support.devtools import headless_page
from tests.support.renderings import plan_fragment

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.environ.get("VSCODE") != "yes",
        reason="it needs a VS Code server from npm: make test-vscode",
    ),
]


def test_the_view_is_laid_out(tmp_path, chromium):
    notebooks = {name: notebook_of(plan_fragment(plan)) for name, plan in PLANS.items()}
    problems = []
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
                label = f"{name}, {'dark' if dark else 'light'}"
                resize = partial(server.resize, page)
                problems += problems_by_width(page, OUTPUT, label, resize)
            assert not [url for url in page.requests if "attack" in url]
    assert problems == []
