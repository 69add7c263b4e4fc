"""Parts of a process start in their order and stop in the other."""

import pytest

from kfp_placement_controller.parts import working


class APart:
    """Notes what happens to it."""

    def __init__(self, name: str, seen: list[str]) -> None:
        self.name = name
        self.seen = seen

    def start(self) -> None:
        """Noted."""
        self.seen.append(f"start {self.name}")

    def stop(self) -> None:
        """Noted."""
        self.seen.append(f"stop {self.name}")


def work_with_a_defect(seen: list[str]) -> None:
    with working(APart("events", seen), APart("watches", seen)):
        seen.append("work")
        raise RuntimeError("a defect")


def test_what_starts_last_stops_first_also_after_a_defect():
    seen: list[str] = []
    with pytest.raises(RuntimeError, match="a defect"):
        work_with_a_defect(seen)
    assert seen == ["start events", "start watches", "work", "stop watches", "stop events"]


class Broken(APart):
    """Cannot start."""

    def start(self) -> None:
        """It fails."""
        raise RuntimeError("no port")


def test_where_one_does_not_start_those_before_it_stop():
    seen: list[str] = []
    parts = [APart("events", seen), Broken("probes", seen), APart("watches", seen)]
    with pytest.raises(RuntimeError, match="no port"), working(*parts):
        seen.append("work")
    assert seen == ["start events", "stop events"]
