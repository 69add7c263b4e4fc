"""A thousand runs that wait: what `queue` takes for them, and what it costs to hold them.

Nothing runs there: Argo and the kubelets are left out. What is measured are the processes `queue`
and `plan`, which have the packages of the controller's image, and the API server's admission of
Workflows with the shipped policies.
"""

import contextlib
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.tables import Table
from kfp_placement_controller.settings import QueueSettings
from tests.controller.cluster_bench import large_cluster, process_memory, queue_scale_report
from tests.controller.cluster_bench.measuring_command import measure_by_command, say
from tests.controller.cluster_bench.queue_scale_report import (
    AT_ONCE,
    DECIDED,
    EVENTS,
    FILLING,
    IDLE,
    IN_TURN,
    RELEASING,
    TAKING_OVER,
    Creation,
    QueueMeasured,
    QueueSizes,
    Work,
)
from tests.controller.cluster_bench.waiting_runs import (
    WaitingRequests,
    create_at_once,
    create_in_turn,
    delete_runs,
    held_count,
    numbered,
    touch,
    waiting_run,
)
from tests.controller.end_to_end.queues import released, set_queue
from tests.controller.end_to_end.teams import Team
from tests.controlplane.argo.crds import VERSION as ARGO_VERSION
from tests.controlplane.exceptions import ControlPlaneError
from tests.controlplane.plane import ControlPlane, PlaneOptions
from tests.controlplane.waiting import wait_until
from tests.support.installation import PLANNER, QUEUE, Installation, InstallationOptions
from tests.support.manifests import NAMESPACE
from tests.support.process_usage import cpu_seconds
from tests.support.scraping import Scraped
from tests.support.shipped_environment import make_shipped_environment

QUEUES = (QUEUE.format(1), QUEUE.format(2))

_API_SERVER = "kube-apiserver"
_BUDGET = "300ms"
_CREATED = {AT_ONCE: create_at_once, IN_TURN: create_in_turn}
_DECISIONS = "queue_tick_seconds"
_KINDS = ("Workflow", "RunRequest")
_RULES = {"onControllerDown": "hold"}
"""Policy under which no run begins because the planner takes long on a busy machine."""
_TIMEOUT_SECONDS = 600.0


def main() -> int:
    """Measure; returns the exit code."""
    return measure_by_command(__doc__, QueueSizes, ManyWaitingRuns, "Many runs that wait")


class ManyWaitingRuns:
    """The measurements, one after another; what each finds is written down at once."""

    def __init__(self, sizes: QueueSizes) -> None:
        self._sizes = sizes
        self._measured = QueueMeasured(sizes)
        self._workflow = waiting_run()

    def parts(self) -> Sequence[Table | Sequence[str]]:
        """What was measured by now, for the page."""
        return queue_scale_report.parts_of(self._measured)

    def measure(self) -> None:
        """All of them."""
        with (
            tempfile.TemporaryDirectory() as folder,
            ControlPlane(PlaneOptions(simulate_pods=False), say) as plane,
        ):
            say("installing what the image has")
            options = InstallationOptions(
                features=("queue",),
                queues=len(QUEUES),
                policy={"engine": {"budget": _BUDGET}},
                stand_ins=False,
                python=str(make_shipped_environment(Path(folder) / "image")),
            )
            large_cluster.add_nodes(plane.api, self._sizes.nodes, say)
            with Installation(plane, options) as installation:
                self._hold(plane, installation)
                with installation.namespace() as team:
                    self._wait(installation, team)

    # What it costs to hold runs.

    def _hold(self, plane: ControlPlane, installation: Installation) -> None:
        """Batches that are held beside batches that are not, while our processes are dead."""
        with installation.namespace() as queued, installation.namespace() as free:
            set_queue(Team(installation, queued), quota={"runs": 0})
            with installation.dead(PLANNER, *QUEUES):
                for pair in range(self._sizes.pairs):
                    for how in _CREATED:
                        for is_held in (True, False) if pair % 2 else (False, True):
                            team = queued if is_held else free
                            creation = self._create(plane, how, team, is_held=is_held)
                            self._measured.creations.setdefault((how, is_held), []).append(creation)
        installation.wait_at_work()

    def _create(self, plane: ControlPlane, how: str, namespace: str, *, is_held: bool) -> Creation:
        """A batch, which is gone when this returns."""
        batch = self._sizes.batch
        items = numbered(self._workflow, "created", batch, namespace)
        server = plane.processes[_API_SERVER].pid
        computed = cpu_seconds(server)
        wall = _CREATED[how](plane.api, items) / batch
        server_cpu = (cpu_seconds(server) - computed) / batch
        held = held_count(plane.api, namespace)
        if held != (batch if is_held else 0):
            raise ControlPlaneError(f"{held} of {batch} Workflows are held in {namespace}")
        delete_runs(plane.api, namespace)
        held_as = "held" if is_held else "not held"
        say(f"{batch} created {how}, {held_as}: {1000 * wall:.1f} ms each")
        return Creation(wall, server_cpu)

    # What is done for runs that wait.

    def _wait(self, installation: Installation, team: str) -> None:
        set_queue(Team(installation, team), quota={"runs": 1}, **_RULES)
        requests = WaitingRequests(installation.api, team)
        requests.start()
        (first,) = numbered(self._workflow, "first", 1, team)
        installation.api.create(first)
        released(Team(installation, team), first["metadata"]["name"])
        leader = self._leader(installation)
        with self._working(installation, leader, FILLING):
            self._fill(installation, team, requests)
        self._remember(installation)
        with self._working(installation, leader, IDLE):
            _pause(self._sizes.idle)
        with self._working(installation, leader, EVENTS):
            self._change(installation, team, requests)
        self._remember(installation)
        leader = self._take_over(installation, leader)
        self._remember(installation)
        with self._working(installation, leader, RELEASING):
            self._release(installation, leader, team)
        self._remember(installation)
        requests.stop()

    def _fill(self, installation: Installation, team: str, requests: WaitingRequests) -> None:
        """Create all runs, and wait until all is said of them."""
        began, count = time.monotonic(), self._sizes.runs // len(_CREATED)
        for number, (how, create) in enumerate(_CREATED.items()):
            items = numbered(self._workflow, f"run-{number}", count, team)
            self._measured.at_work[how] = create(installation.api, items) / count
        say(f"{self._sizes.runs} runs created in {time.monotonic() - began:.0f} s")
        runs = len(_CREATED) * count
        for what, reached in (
            ("all have a demand and a verdict", requests.decided),
            ("all say how many wait", lambda: requests.counted(runs)),
        ):
            wait_until(
                lambda reached=reached: reached() >= runs,  # type: ignore[misc]
                what,
                _TIMEOUT_SECONDS,
                reached,
            )
            moment = f"from the first creation until {what}"
            self._measured.moments[moment] = time.monotonic() - began
            say(f"{what} after {time.monotonic() - began:.0f} s")

    def _change(self, installation: Installation, team: str, requests: WaitingRequests) -> None:
        """Change RunRequests and Workflows in turn."""
        workflows = installation.api.list(ARGO_VERSION, "Workflow", team)
        both = [each for pair in zip(requests.items(), workflows, strict=False) for each in pair]
        touched = [both[number % len(both)] for number in range(self._sizes.events)]
        touch(installation.api, touched, self._sizes.rate)

    def _take_over(self, installation: Installation, leader: str) -> str:
        """The leader is killed; returns who leads then."""
        (other,) = (name for name in QUEUES if name != leader)
        installation.kill(leader)
        wait_until(lambda: installation.metric(other, "leading"), f"{other} to lead")
        with self._working(installation, other, TAKING_OVER):
            wait_until(
                lambda: installation.metric(other, "runs_waiting") >= self._sizes.runs,
                f"{other} to have decided",
                _TIMEOUT_SECONDS,
            )
            seconds = (datetime.now(UTC) - self._acquired_at(installation)).total_seconds()
            self._measured.moments[DECIDED] = seconds
            say(f"{other} has decided {seconds:.1f} s after it has got the Lease")
        began = time.monotonic()
        installation.restart(leader)
        self._measured.moments["start of another `queue`"] = time.monotonic() - began
        return other

    def _acquired_at(self, installation: Installation) -> datetime:
        name = QueueSettings().queue_lease_name
        lease = installation.api.get("coordination.k8s.io/v1", "Lease", name, NAMESPACE)
        acquired_at = lease["spec"].get("acquireTime")
        if acquired_at is None:
            raise ControlPlaneError(f"nobody has ever had Lease {name}")
        return datetime.fromisoformat(acquired_at)

    def _release(self, installation: Installation, leader: str, team: str) -> None:
        """Let as many runs begin as were created at once."""
        count = self._sizes.batch
        before = installation.metric(leader, "runs_released_total")
        began = time.monotonic()
        set_queue(Team(installation, team), quota={"runs": 1 + count}, **_RULES)
        wait_until(
            lambda: installation.metric(leader, "runs_released_total") - before >= count,
            f"{count} runs to be released",
            _TIMEOUT_SECONDS,
        )
        seconds = time.monotonic() - began
        self._measured.moments[f"release of {count} runs"] = seconds
        say(f"{count} runs released in {seconds:.1f} s")

    def _leader(self, installation: Installation) -> str:
        return next(name for name in QUEUES if installation.metric(name, "leading"))

    @contextlib.contextmanager
    def _working(self, installation: Installation, name: str, what: str) -> Iterator[None]:
        """Measure what a process does in the block."""
        pid = installation.processes[name].pid
        before, computed, began = installation.metrics(name), cpu_seconds(pid), time.monotonic()
        yield
        wall, computed = time.monotonic() - began, cpu_seconds(pid) - computed
        self._measured.work[what] = work_between(before, installation.metrics(name), wall, computed)
        say(f"while {what}: {computed:.1f} s of CPU in {wall:.0f} s")

    def _remember(self, installation: Installation) -> None:
        process_memory.remember(self._measured.memory, installation, (PLANNER, *QUEUES))


def work_between(before: Scraped, after: Scraped, wall: float, computed: float) -> Work:
    """What a `queue` has done between two looks at its metrics.

    Args:
        before: its metrics at first.
        after: its metrics then.
        wall: seconds in between.
        computed: seconds of CPU time in between.
    """

    def grown(sample: str, **labels: str) -> float:
        return after.total(sample, **labels) - before.total(sample, **labels)

    events = sum(grown("watch_changes_total", kind=kind) for kind in _KINDS)
    writes = {kind: int(grown("api_writes_total", kind=kind)) for kind in _KINDS}
    return Work(
        wall=wall,
        cpu=computed,
        events=int(events),
        writes={kind: count for kind, count in writes.items() if count},
        decisions=int(grown(f"{_DECISIONS}_count")),
        decision_seconds=grown(f"{_DECISIONS}_sum"),
    )


def _pause(seconds: float) -> None:
    """Let time pass in which only the measured process does something."""
    threading.Event().wait(seconds)


if __name__ == "__main__":
    sys.exit(main())
