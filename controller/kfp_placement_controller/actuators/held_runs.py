"""Release of waiting runs while `plan` or `queue` is dead: by hand, or after a deadline."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.observed.liveness import renewed_at
from kfp_placement_controller.observed.run_queues import ObservedQueue, observe_queue
from kfp_placement_controller.queueing.overdue import Holding, Silence
from kfp_placement_controller.sources.queue_source import MergePatch, QueuedRun, QueueSource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError
from kfp_placement_kube.kinds import LEASES, JsonObject, key_of

Say = Callable[[str], None]


@dataclass
class ReleaseCounts:
    """Counts of a release.

    Attributes:
        freed: number of runs that were released.
        failed: number of runs and queues that could not be written.
    """

    freed: int = 0
    failed: int = 0


def close_queue(client: KubeClient, key: QueueKey, status: JsonObject) -> None:
    """Let a queue hold no more new runs, until the process `queue` opens it again.

    Args:
        client: the API server.
        key: key of the queue.
        status: part of its status to write.

    Raises:
        KubernetesError: the write was refused, or there was no answer.
    """
    namespace, name = key
    try:
        client.patch(RUN_QUEUES, name, namespace, {"status": status}, subresource="status")
    except NotFoundError:
        return


def silence_of(client: KubeClient, namespace: str, names: Sequence[str]) -> Silence:
    """Return when the holders of Leases last renewed them.

    The caller compares these times with our clock, which may differ from theirs: they are good for
    minutes, not for seconds.

    Args:
        client: the API server.
        namespace: namespace of the Leases.
        names: names of the Leases of `plan` and `queue`.

    Raises:
        KubernetesError: the read was refused, or there was no answer.
    """
    times = {name: _renewed_at(client.get(LEASES, name, namespace)) for name in names}
    return Silence(
        min((each for each in times.values() if each is not None), default=None),
        [name for name, each in times.items() if each is None],
    )


def _renewed_at(raw: JsonObject | None) -> datetime | None:
    try:
        return None if raw is None else renewed_at(raw)
    except InputError:
        return None


@dataclass
class HeldRuns:
    """Runs that wait, held or preempted, and the queues that let them wait.

    Attributes:
        client: the API server.
        source: source of the runs.
        say: callback with a line about each change.
        dry_run: whether to describe the changes without making them.
    """

    client: KubeClient
    source: QueueSource
    say: Say
    dry_run: bool

    def release(
        self,
        holding_of: Callable[[ObservedQueue | None], Holding],
        closing_patch_of: Callable[[ObservedQueue], JsonObject | None],
    ) -> ReleaseCounts:
        """Release all waiting runs except those that their queue may still hold.

        Args:
            holding_of: function that returns which runs a queue may still hold; its argument is
                None for namespaces without a queue in which runs wait.
            closing_patch_of: function that makes the status of a queue that may hold no new runs,
                or returns None where the queue already has that status.

        Raises:
            KubernetesError: queues or runs cannot be listed.
        """
        holdings: dict[str, Holding] = {}
        counts = ReleaseCounts()
        for queue in self._queues():
            holding = holdings[queue.key.namespace] = holding_of(queue)
            status = None if holding is Holding.ALL else closing_patch_of(queue)
            if status is not None:
                self._close(queue.key, status, counts)
        without_queue = holding_of(None)
        for raw in self._waiting():
            if holdings.get(key_of(raw)[0], without_queue) is Holding.NONE:
                self._free(raw, counts)
        return counts

    def _queues(self) -> Iterator[ObservedQueue]:
        for raw in self.client.list(RUN_QUEUES).items:
            try:
                queue = observe_queue(raw)
            except InputError as error:
                self.say(f"a RunQueue is skipped: {error}")
                continue
            if queue.key.name == DEFAULT_QUEUE:
                yield queue

    def _waiting(self) -> Iterator[JsonObject]:
        for selector in self.source.waiting_selectors:
            yield from self.client.list(self.source.kind, label_selector=selector).items

    def _close(self, key: QueueKey, status: JsonObject, counts: ReleaseCounts) -> None:
        """Let a queue hold no more new runs, and count a failure in `counts`."""
        namespace, name = key
        if self.dry_run:
            self.say(f"RunQueue {namespace}/{name} would hold no more runs")
            return
        try:
            close_queue(self.client, key, status)
        except KubernetesError as error:
            self.say(f"RunQueue {namespace}/{name} goes on to hold runs: {error}")
            counts.failed += 1
        else:
            self.say(f"RunQueue {namespace}/{name} holds no more runs")

    def _free(self, raw: JsonObject, counts: ReleaseCounts) -> None:
        """Release a run if it still waits, and count that in `counts`."""
        namespace, name = key_of(raw)

        def write(now: JsonObject | None) -> bool:
            run = None if now is None else self.source.observe_queued(now)
            patch = None if run is None else self._patch(run)
            if patch is None:
                return False
            if not self.dry_run:
                self.client.patch(self.source.kind, name, namespace, patch)
            return True

        read = partial(self.client.get, self.source.kind, name, namespace)
        try:
            freed = modify(read(), write, read)
        except NotFoundError:
            return
        except (KubernetesError, InputError) as error:
            self.say(f"run {namespace}/{name} could not be released: {error}")
            counts.failed += 1
            return
        if freed:
            self.say(f"{'would release' if self.dry_run else 'released'} run {namespace}/{name}")
            if not self.dry_run:
                counts.freed += 1

    def _patch(self, run: QueuedRun) -> MergePatch | None:
        """Return the patch that releases a run, or None if it does not wait for a queue."""
        if run.is_held:
            return self.source.release_patch(run)
        if run.is_preempted and run.end is None:
            return self.source.resume_patch(run)
        return None
