"""How the planner lists what it watches."""

from typing import Any

from kfp_placement_controller.connection import ApiMetrics
from kfp_placement_controller.loops.inbox import Inbox
from kfp_placement_controller.settings import PlanSettings
from kfp_placement_controller.sources import DEFAULT_SOURCES
from kfp_placement_controller.watches.plan_watches import plan_watches
from kfp_placement_engine.contract.history.pipeline_history import (
    HISTORIES_PER_PAGE,
    MAX_HISTORY_BYTES,
)
from kfp_placement_kube.client import PAGE_SIZE, Listing
from tests.controlplane.waiting import wait_until
from tests.support.scripted_api import ScriptedStream


class EmptyApi:
    """An API server without objects.

    Attributes:
        page_sizes: of the lists that it was asked for, by kind.
    """

    def __init__(self) -> None:
        self.observer = ApiMetrics("test")
        self.page_sizes: dict[str, int] = {}

    def list(self, kind: Any, *, limit: int, **_: Any) -> Listing:
        """No object."""
        self.page_sizes[kind.kind] = limit
        return Listing(iter([]), "1")

    def stream(self, *_: Any, **__: Any) -> ScriptedStream:
        """Nothing happens."""
        return ScriptedStream([], ends=False)


def test_histories_are_read_in_pages_that_take_little_memory():
    api: Any = EmptyApi()
    group = plan_watches(api, PlanSettings(history=True), DEFAULT_SOURCES, Inbox())
    group.start()
    try:
        wait_until(group.is_synced, "all kinds to be listed")
    finally:
        group.stop()
    assert api.page_sizes.pop("PipelineHistory") == HISTORIES_PER_PAGE
    assert HISTORIES_PER_PAGE * MAX_HISTORY_BYTES <= 8 * 2**20
    assert set(api.page_sizes.values()) == {PAGE_SIZE}
