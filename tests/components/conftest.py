from pathlib import Path

import pytest

from tests.components.artifacts import Artifact


@pytest.fixture
def artifact(tmp_path):
    """Makes artifacts; with a text, their file exists."""

    def make(name, text=None):
        path = Path(tmp_path, name)
        if text is not None:
            path.write_text(text)
        return Artifact(str(path))

    return make
