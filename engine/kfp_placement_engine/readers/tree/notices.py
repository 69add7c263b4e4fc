"""Collects what a reader wants people to know, each thing once however many iterations say it."""

from collections.abc import Iterable

from kfp_placement_engine.model.run_graph import Notice


class NoticeCollector:
    """Notices in the order in which they came up."""

    def __init__(self, notices: Iterable[Notice] = ()) -> None:
        self._notices: dict[Notice, None] = dict.fromkeys(notices)

    def add(self, code: str, message: str, step: str = "") -> None:
        """Note something; a repetition is dropped."""
        self._notices.setdefault(Notice(code, message, step))

    def notices(self) -> tuple[Notice, ...]:
        """All notices."""
        return tuple(self._notices)
