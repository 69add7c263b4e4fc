"""A defect that tests put into the product, and how many messages of the log report it."""

from typing import Any

import pytest

DEFECT = "made up"


def fail(*_arguments: Any, **_options: Any) -> Any:
    """Take the place of a function that has a defect."""
    raise ZeroDivisionError(DEFECT)


def times_said(caplog: pytest.LogCaptureFixture, text: str = DEFECT) -> int:
    """Return how many messages of the log contain `text`."""
    return len([each for each in caplog.messages if text in each])
