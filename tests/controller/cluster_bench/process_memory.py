"""Memory of our processes, the largest seen of each."""

from collections.abc import Iterable, Mapping

from benchmarks.tables import Table
from tests.support.installation import PLANNER, Installation
from tests.support.process_usage import descendants, memory_bytes

_SEARCH_PROCESS = "search of plan"


def remember(seen: dict[str, int], installation: Installation, names: Iterable[str]) -> None:
    """Look at some processes and at what searches for the planner."""
    pids = {name: installation.processes[name].pid for name in names}
    sizes = {name: memory_bytes(pid) for name, pid in pids.items()}
    searching = descendants(installation.processes[PLANNER].pid)
    sizes[_SEARCH_PROCESS] = max(map(memory_bytes, searching), default=0)
    for name, size in sizes.items():
        seen[name] = max(size, seen.get(name, 0))


def table(seen: Mapping[str, int]) -> Table:
    """A row for each process."""
    rows = [[name, f"{size / 1e6:.0f}"] for name, size in seen.items()]
    return Table("Memory of each process, largest seen", ["process", "RSS, MB"], rows)
