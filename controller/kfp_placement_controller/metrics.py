"""Every metric of the in-cluster processes."""

from prometheus_client import Counter, Gauge

PREFIX = "kfp_placement"

API_WRITES = Counter(
    f"{PREFIX}_api_writes",
    "Writes that the API server has accepted.",
    ["kind", "verb"],
)
API_ERRORS = Counter(
    f"{PREFIX}_api_errors",
    "Requests that the API server refused or did not answer; reason as it gives it.",
    ["kind", "verb", "reason"],
)
WATCH_CHANGES = Counter(
    f"{PREFIX}_watch_changes",
    "Objects that a watch or a list has shown to be new, changed or gone.",
    ["kind"],
)
WATCH_LISTS = Counter(
    f"{PREFIX}_watch_lists",
    "Complete lists, the first at the start; more of them mean that watches could not be resumed.",
    ["kind"],
)
WATCH_BAD_OBJECTS = Counter(
    f"{PREFIX}_watch_bad_objects",
    "Objects that could not be read and were passed over.",
    ["kind"],
)
WATCH_AGE_SECONDS = Gauge(
    f"{PREFIX}_watch_age_seconds",
    "Time since a watch last brought anything.",
    ["kind"],
)
LEADING = Gauge(
    f"{PREFIX}_leading",
    "1 while this process holds the planner's Lease.",
)
EVENTS_DROPPED = Counter(
    f"{PREFIX}_events_dropped",
    "Events that were not written because too many waited or the API server refused.",
)
