"""A run finds its steps by name."""

import pytest

from tests.support.builders import a_run, a_step


def test_a_step_is_found_by_its_name():
    run = a_run(a_step("load"), a_step("train"))
    assert run.step("train") is run.steps[1]


def test_a_name_of_no_step_is_an_error():
    """It names what was asked for."""
    with pytest.raises(KeyError, match="trian"):
        a_run(a_step("train")).step("trian")
