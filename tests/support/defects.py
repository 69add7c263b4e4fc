"""A defect that tests put into the product, and how often it is said."""

from typing import Any

import pytest

DEFECT = "made up"


def fail(*_arguments: Any, **_options: Any) -> Any:
    """Take the place of a function that has a defect."""
    raise ZeroDivisionError(DEFECT)


def times_said(caplog: pytest.LogCaptureFixture, text: str = DEFECT) -> int:
    """How many messages of the log have a text in them."""
    return len([each for each in caplog.messages if text in each])
