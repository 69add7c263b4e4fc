"""Lets held runs begin when those who admit runs are dead: by hand, or once a Lease is too old."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from kfp_placement_controller.kinds import RUN_QUEUES
from kfp_placement_controller.observed.liveness import observe_held_lease
from kfp_placement_controller.observed.run_queues import ObservedQueue, observe_queue
from kfp_placement_controller.sources.queue_source import QueueSource
from kfp_placement_engine.contract.run_queue import DEFAULT_QUEUE
from kfp_placement_engine.exceptions import InputError
from kfp_placement_engine.model.keys import QueueKey
from kfp_placement_kube.answers import JsonObject
from kfp_placement_kube.client import KubeClient, modify
from kfp_placement_kube.exceptions import KubernetesError, NotFoundError
from kfp_placement_kube.kinds import LEASES

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What was done.

    Attributes:
        freed: runs that may begin.
        failed: runs, or queues, that could not be written.
    """

    freed: int = 0
    failed: int = 0


def close_queue(client: KubeClient, key: QueueKey) -> None:
    """Let a queue hold no more new runs, until whoever admits runs opens it again.

    Raises:
        KubernetesError: refused, or no answer.
    """
    namespace, name = key
    patch = {"status": {"ready": False}}
    try:
        client.patch(RUN_QUEUES, name, namespace, patch, subresource="status")
    except NotFoundError:
        return


def longest_silence(
    client: KubeClient, namespace: str, names: Sequence[str], now: datetime
) -> timedelta:
    """How long ago the Leases were renewed, of that which is silent longest.

    A Lease that there is none of has always been silent. Our clock is compared with the
    holder's: this is asked for minutes, not for seconds.

    Raises:
        KubernetesError: refused, or no answer.
    """
    return max(_silence(client.get(LEASES, name, namespace), now) for name in names)


def _silence(raw: JsonObject | None, now: datetime) -> timedelta:
    try:
        lease = None if raw is None else observe_held_lease(raw)
    except InputError:
        lease = None
    if lease is None or lease.renewed_at is None:
        return timedelta.max
    return now - lease.renewed_at


class HeldRuns:
    """The runs that are held now, and the queues that hold them."""

    def __init__(self, client: KubeClient, source: QueueSource, say: Say, *, dry_run: bool) -> None:
        """Nothing is asked yet.

        Args:
            client: the API server.
            source: of the runs.
            say: takes a line about what is done.
            dry_run: say what would be done, and do nothing.
        """
        self._client = client
        self._source = source
        self._say = say
        self._dry_run = dry_run

    def release(self, may_hold: Callable[[ObservedQueue], bool]) -> Outcome:
        """Let all runs begin but those that their queue may go on to hold.

        Args:
            may_hold: whether the queue of a namespace may.

        Raises:
            KubernetesError: queues or runs cannot be listed.
        """
        holding = set()
        failed = 0
        for queue in self._queues():
            if may_hold(queue):
                holding.add(queue.key.namespace)
            elif not self._closed(queue):
                failed += 1
        results = [self._freed(raw) for raw in self._held() if _namespace(raw) not in holding]
        freed = sum(result is True for result in results)
        return Outcome(freed, failed + sum(result is None for result in results))

    def _queues(self) -> Iterator[ObservedQueue]:
        for raw in self._client.list(RUN_QUEUES).items:
            try:
                queue = observe_queue(raw)
            except InputError as error:
                self._say(f"a RunQueue is skipped: {error}")
                continue
            if queue.key.name == DEFAULT_QUEUE:
                yield queue

    def _held(self) -> Iterator[JsonObject]:
        listing = self._client.list(self._source.kind, label_selector=self._source.held_selector)
        return listing.items

    def _closed(self, queue: ObservedQueue) -> bool:
        """Let a queue hold no more new runs; returns whether it holds none then."""
        namespace, name = queue.key
        if queue.status.ready is not True:
            return True
        if self._dry_run:
            self._say(f"RunQueue {namespace}/{name} would hold no more runs")
            return True
        try:
            close_queue(self._client, queue.key)
        except KubernetesError as error:
            self._say(f"RunQueue {namespace}/{name} goes on to hold runs: {error}")
            return False
        self._say(f"RunQueue {namespace}/{name} holds no more runs")
        return True

    def _freed(self, raw: JsonObject) -> bool | None:
        """Let a run begin; False = it is held no longer, None = it could not be done."""
        metadata = raw["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        if self._dry_run:
            self._say(f"would release run {namespace}/{name}")
            return False

        def write(now: JsonObject | None) -> bool:
            run = None if now is None else self._source.observe_queued(now)
            if run is None or not run.is_held:
                return False
            self._client.patch(self._source.kind, name, namespace, self._source.release_patch(run))
            return True

        read = partial(self._client.get, self._source.kind, name, namespace)
        try:
            freed = modify(read(), write, read)
        except NotFoundError:
            return False
        except (KubernetesError, InputError) as error:
            self._say(f"run {namespace}/{name} could not be released: {error}")
            return None
        if freed:
            self._say(f"released run {namespace}/{name}")
        return freed


def _namespace(raw: JsonObject) -> str:
    return str(raw["metadata"].get("namespace", ""))
