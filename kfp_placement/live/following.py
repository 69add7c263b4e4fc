"""Following of one object of a run, through restarts of the API server."""

import threading
from collections.abc import Callable, Iterator
from itertools import takewhile

from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import (
    ClusterError,
    ClusterExpiredError,
    ClusterForbiddenError,
    ClusterMissingError,
)
from kfp_placement_engine.model.keys import RunKey
from kfp_placement_engine.readers.text.place import mapping_or_empty
from kfp_placement_engine.units.durations import whole_seconds_text
from kfp_placement_kube.kinds import JsonObject, Kind

MAX_REFUSALS = 5
"""Refusals in a row that are tolerated: a server that has just started knows no kinds and rights.
"""

LONGEST_PAUSE_SECONDS = 30.0
"""Longest pause between two attempts."""

PAUSE_BETWEEN_STREAMS_SECONDS = 1.0
"""Pause after a stream that ended: a proxy may end each stream at once."""

Tell = Callable[[str], None]
"""Receiver of a message for people."""


def follow(
    api: ClusterApi, kind: Kind, run: RunKey, *, stopped: threading.Event, tell: Tell
) -> Iterator[JsonObject | None]:
    """Yield an object at each change; None while it does not exist.

    Args:
        api: cluster to read.
        kind: kind of the object, which has the name of the run.
        run: key of the run.
        stopped: event that ends the stream once it is set, within a minute if nothing comes.
        tell: receiver of messages about why nothing comes.

    Raises:
        ClusterError: the server refuses repeatedly.
    """
    namespace, only = run.namespace, f"metadata.name={run.name}"
    failures = 0
    version = ""
    while not stopped.is_set():
        try:
            if not version:
                current = None
                for page in api.pages(kind, namespace=namespace, field_selector=only):
                    version = page.resource_version
                    current = next(iter(page.items), current)
                failures = 0
                yield current
            events = api.stream(kind, version, namespace=namespace, field_selector=only)
            # Asked at bookmarks too, which come about every minute.
            for change, raw in takewhile(lambda _: not stopped.is_set(), events):
                failures = 0
                version = str(
                    mapping_or_empty(raw.get("metadata")).get("resourceVersion") or version
                )
                if change in ("ADDED", "MODIFIED"):
                    yield raw
                elif change == "DELETED":
                    yield None
            stopped.wait(PAUSE_BETWEEN_STREAMS_SECONDS)
        except ClusterExpiredError:
            version = ""
            stopped.wait(PAUSE_BETWEEN_STREAMS_SECONDS)
        except ClusterError as error:
            version = ""
            failures += 1
            refused = isinstance(error, ClusterForbiddenError | ClusterMissingError)
            if refused and failures > MAX_REFUSALS:
                raise
            seconds = min(2.0 ** (failures - 1), LONGEST_PAUSE_SECONDS)
            tell(f"{error} (again in {whole_seconds_text(seconds)})")
            stopped.wait(seconds)
