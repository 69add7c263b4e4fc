"""The solver of linear programs says nothing, whatever its version says by itself."""

from typing import Any

import pytest

from kfp_placement_engine.bounds.lower_bound import lower_bounds
from tests.support.builders import a_cluster, a_node, a_problem, a_run, a_step

highspy: Any = pytest.importorskip("highspy", reason="needs the extra `bounds`")


class TalkativeHighs(highspy.Highs):
    """Names itself as highspy 1.16 does: when callbacks are enabled, unless it is quiet by then."""

    def enableCallbacks(self):  # noqa: N802
        if self.getOptionValue("output_flag")[1]:
            print("Running HiGHS")
        super().enableCallbacks()


@pytest.mark.parametrize("kind", [highspy.Highs, TalkativeHighs])
def test_bounds_write_nothing(kind, monkeypatch, capfd):
    monkeypatch.setattr(highspy, "Highs", kind)
    steps = [a_step(name, seconds=101.23456789) for name in "ab"]
    fast_and_slow = a_cluster(a_node("fast", cpu=1, speed=2.0), a_node("slow", cpu=1))
    found = {bound.kind for bound in lower_bounds(a_problem(a_run(*steps), fast_and_slow))}
    assert found >= {"kinds-lp", "pattern-lp"}
    assert capfd.readouterr() == ("", "")
