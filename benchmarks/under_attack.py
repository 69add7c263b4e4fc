"""Waits of small runs for their plans, while a tenant keeps the planner busy.

On a control plane. The tenant may write 10 times and 4 MB in a second: runs of 6,000 steps that
never begin, patches of their annotations, pods of no run, runs of which each step is another one.
Meanwhile another namespace creates runs of 10 steps, spaced.
"""

import random
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from benchmarks.tables import Table, machine
from tests.controller.cluster_bench.measuring_command import measure_by_command, say
from tests.controlplane import housekeeping
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.support.attacks import (
    Attack,
    Send,
    annotations,
    costly_run,
    creations,
    marked_pod,
    planner_memory_bytes,
    run_of_steps,
    seconds_to_plan,
)
from tests.support.installation import PLANNER, Installation, InstallationOptions
from tests.support.process_usage import cpu_seconds, descendants
from tests.support.taxi_cluster import taxi_nodes

_STEPS = 10
_TIMEOUT_SECONDS = 300.0
_LOOK_SECONDS = 0.2


@dataclass(frozen=True)
class AttackSizes:
    """Options of the measurement.

    Attributes:
        runs: small runs alone, and during each attack.
        large_runs: runs of the tenant.
        large_steps: steps of each of them.
        patches: patches of their annotations.
        pods: pods of no run.
        costly_runs: runs of a tenant whose steps are few, and take long.
        costly_steps: steps of each of them.
        seed: seed of the pauses between small runs.
    """

    runs: int = 50
    large_runs: int = 30
    large_steps: int = 6_000
    patches: int = 160
    pods: int = 800
    costly_runs: int = 20
    costly_steps: int = 2_000
    seed: int = 0


@dataclass
class UnderAttack:
    """Measurement, and the rows of its table.

    Attributes:
        sizes: options.
        rows: rows of the table.
    """

    sizes: AttackSizes
    rows: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.sizes.seed)

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """Return what was measured by now, for the page."""
        headings = ("attack", "runs", "p50 s", "p99 s", "most s", "memory MB", "planner's CPU s")
        return [
            [
                f"Time from the creation of a run of {_STEPS} steps to its plan, while a tenant of"
                f" another namespace attacks, one attack after the other; {machine()}."
                f" Seed {self.sizes.seed}. Memory: the largest seen, of the planner and the process"
                " that searches for it."
            ],
            Table("Plans under attack", headings, self.rows),
        ]

    def measure(self) -> None:
        """Measure everything on one control plane."""
        options = InstallationOptions(features=("gates",), stand_ins=False)
        with ControlPlane(PlaneOptions(simulate_pods=False), say) as plane:
            housekeeping.add_nodes(plane.api, *taxi_nodes())
            with (
                Installation(plane, options) as installation,
                installation.namespace() as tenant,
                installation.namespace() as team,
            ):
                sizes = self.sizes
                large = [
                    run_of_steps(sizes.large_steps, f"large-{number}", tenant)
                    for number in range(sizes.large_runs)
                ]
                stray = [
                    marked_pod(f"stray-{number}", tenant, f"none-{number}")
                    for number in range(sizes.pods)
                ]
                costly = [
                    costly_run(sizes.costly_steps, f"costly-{number}", tenant)
                    for number in range(sizes.costly_runs)
                ]
                attacks: dict[str, Iterator[tuple[int, Send]]] = {
                    "none": iter(()),
                    "large runs": creations(installation, large),
                    "patches": annotations(installation, large, sizes.patches),
                    "stray pods": creations(installation, stray),
                    "costly runs": creations(installation, costly),
                }
                for name, writes in attacks.items():
                    self._measure(installation, team, name, Attack(writes))

    def _measure(self, installation: Installation, team: str, name: str, attack: Attack) -> None:
        """Small runs during an attack, which they outlast or end."""
        taken: list[float] = []
        used = _planner_cpu(installation)
        with attack, _Largest(lambda: planner_memory_bytes(installation)) as memory:
            for number in range(self.sizes.runs):
                run = run_of_steps(_STEPS, f"small-{name.replace(' ', '-')}-{number}", team)
                taken.append(seconds_to_plan(installation, run, _TIMEOUT_SECONDS))
                say(f"{name}: {taken[-1]:.2f} s, {attack.sent} writes sent")
                # As much again as an honest team waits between two runs, at any moment of a tick.
                time.sleep(self._random.uniform(0.0, 1.0))
                installation.api.delete(run)
        self.rows.append(
            [
                name,
                str(len(taken)),
                f"{statistics.median(taken):.2f}",
                f"{_quantile(taken, 0.99):.2f}",
                f"{max(taken):.2f}",
                f"{memory.largest / 1e6:.0f}",
                f"{_planner_cpu(installation) - used:.1f}",
            ]
        )
        say(" | ".join(self.rows[-1]))


class _Largest:
    """The largest value of a figure while this context lasts."""

    def __init__(self, look: Callable[[], float]) -> None:
        self.largest = 0.0
        self._look = look
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "_Largest":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_LOOK_SECONDS):
            self.largest = max(self.largest, self._look())


def _planner_cpu(installation: Installation) -> float:
    pid = installation.processes[PLANNER].pid
    return sum(map(cpu_seconds, (pid, *descendants(pid))))


def _quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def main() -> int:
    """Measure; returns the exit code."""
    return measure_by_command(__doc__, AttackSizes, UnderAttack, "Plans under attack")


if __name__ == "__main__":
    sys.exit(main())
