"""A collector of a reader's notices, each kept once however many iterations repeat it."""

from collections.abc import Iterable

from kfp_placement_engine.model.notices import Notice


class NoticeCollector:
    """Collector of notices without repetitions."""

    def __init__(self, notices: Iterable[Notice]) -> None:
        self._notices: dict[Notice, None] = dict.fromkeys(notices)

    def add(self, code: str, message: str, step: str = "") -> None:
        """Note something; a repetition is dropped."""
        self._notices.setdefault(Notice(code, message, step))

    def notices(self) -> tuple[Notice, ...]:
        """Return the notices in the order of their first mention."""
        return tuple(self._notices)
