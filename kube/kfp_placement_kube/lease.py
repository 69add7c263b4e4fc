"""Leader election by a Lease, of which one replica at a time is the holder.

The rules are those of Kubernetes' own `client-go/tools/leaderelection`. Only our own clock is
trusted: a Lease is free when we have seen it unchanged for as long as it says.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from kfp_placement_kube.client import KubeClient
from kfp_placement_kube.exceptions import KubeError, WriteConflictError
from kfp_placement_kube.kinds import LEASES, JsonObject
from kfp_placement_kube.times import micro_time_text

_LOG = logging.getLogger(__name__)

_JITTER = 0.2


@dataclass(frozen=True)
class ElectionParams:
    """Times of an election; the defaults are Kubernetes' own.

    Attributes:
        lease_seconds: time without a renewal after which a Lease is free.
        renew_deadline_seconds: time without a renewal after which a leader stops leading, before
            others may take over.
        retry_seconds: pause between two tries.
    """

    lease_seconds: int = 15
    renew_deadline_seconds: float = 10.0
    retry_seconds: float = 2.0

    def __post_init__(self) -> None:
        if not self.retry_seconds < self.renew_deadline_seconds < self.lease_seconds:
            raise ValueError(
                f"retry ({self.retry_seconds}) < renewal deadline ({self.renew_deadline_seconds})"
                f" < lease ({self.lease_seconds}) must hold"
            )


@dataclass(eq=False)
class LeaderElection:
    """Holds a Lease while it can, in a thread of its own.

    Whoever leads has an epoch, the Lease's transitions; every new leader's is higher. `epoch` is
    None as soon as others may lead, even while one of our requests hangs or the process was frozen.

    Attributes:
        client: client of the API server; its requests should end well within the renewal deadline.
        namespace: namespace of the Lease.
        name: name of the Lease.
        identity: name of this candidate, which no other candidate has.
        clock: function that returns the time, for the fields of the Lease.
        changed: function called with the epoch when we begin to lead and with None when we stop,
            in the thread of the election.
        params: times of the election.
        seed: seed of the jitter; None = any.
        monotonic: function that returns seconds that only grow.
    """

    client: KubeClient
    namespace: str
    name: str
    identity: str
    clock: Callable[[], datetime]
    changed: Callable[[int | None], None] = lambda _: None
    params: ElectionParams = ElectionParams()
    seed: int | None = None
    monotonic: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        """Prepare the thread without starting it."""
        self._place = (self.namespace, self.name)
        self._rng = random.Random(self.seed)
        self._epoch: int | None = None
        self._least_epoch = 0
        self._renewed_at = float("-inf")
        self._seen: JsonObject | None = None
        self._seen_at = float("-inf")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._work, name=f"lease-{self.name}", daemon=True)

    @property
    def epoch(self) -> int | None:
        """Epoch of our Lease, or None while another process leads."""
        deadline = self._renewed_at + self.params.renew_deadline_seconds
        return self._epoch if self.monotonic() < deadline else None

    def raise_epoch(self, least: int) -> None:
        """Lead with this epoch at least, from the next renewal on; it is written into the Lease.

        A Lease that was deleted counts from zero again, and what earlier leaders wrote does not.
        """
        self._least_epoch = max(self._least_epoch, least)

    def start(self) -> None:
        """Start the thread, which stands for election."""
        self._thread.start()

    def stop(self) -> None:
        """Give the Lease back and wait for the end of the thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def alive(self) -> bool:
        """Return whether the thread works."""
        return self._thread.is_alive()

    def _work(self) -> None:
        reported: int | None = None
        while not self._stopping.is_set():
            self._try()
            if self.epoch != reported:
                reported = self.epoch
                self._report(reported)
            # The jitter keeps candidates from trying at the same moment.
            self._stopping.wait(self.params.retry_seconds * (1 + _JITTER * self._rng.random()))
        if reported is not None:
            self._report(None)
        self._give_back()

    def _report(self, epoch: int | None) -> None:
        if epoch is None:
            _LOG.warning("%s no longer leads", self.identity)
        else:
            _LOG.info("%s leads, epoch %d", self.identity, epoch)
        self.client.observer.leading(epoch is not None)
        self.changed(epoch)

    def _try(self) -> None:
        """Take the Lease if it is free, or renew it if it is ours."""
        # The time before the request: the answer may be that old.
        requested_at = self.monotonic()
        try:
            self._acquire_or_renew(requested_at)
        except WriteConflictError:
            _LOG.debug("lease %s/%s was written by another", *self._place)
        except KubeError as error:
            _LOG.warning("lease %s/%s: %s", *self._place, error)
        if self.epoch is None:
            self._epoch = None

    def _acquire_or_renew(self, requested_at: float) -> None:
        namespace, name = self._place
        raw = self.client.get(LEASES, name, namespace)
        if raw is None:
            spec = self._spec(0)
            body = {"metadata": {"name": name, "namespace": namespace}, "spec": spec}
            self._hold(self.client.create(LEASES, body), requested_at)
            return
        self._see(raw)
        lease = raw["spec"]
        holder, transitions = lease.get("holderIdentity"), lease.get("leaseTransitions", 0)
        if self._epoch is not None and holder == self.identity:
            spec = self._spec(transitions, lease.get("acquireTime"))
        elif holder and not self._has_expired(lease):
            # Another leads. Our own name counts as another's until it expires: it was a process
            # before this one, whose last writes may be under way.
            self._epoch = None
            return
        else:
            spec = self._spec(transitions + 1)
        written = self.client.replace(LEASES, {**raw, "spec": {**lease, **spec}})
        self._hold(written, requested_at)

    def _spec(self, transitions: int, acquired_at: str | None = None) -> JsonObject:
        now = micro_time_text(self.clock())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.params.lease_seconds,
            "acquireTime": acquired_at or now,
            "renewTime": now,
            "leaseTransitions": max(transitions, self._least_epoch),
        }

    def _see(self, raw: JsonObject) -> None:
        """Note when the Lease has changed.

        Whatever changes in it counts, as in client-go, and not only another holder or time of
        renewal, by which others watch whether a holder is alive: two leaders at a time do harm,
        and one that leads a few seconds later does none.
        """
        if self._seen is None or self._seen.get("spec") != raw.get("spec"):
            self._seen, self._seen_at = raw, self.monotonic()

    def _has_expired(self, lease: JsonObject) -> bool:
        duration = lease.get("leaseDurationSeconds") or self.params.lease_seconds
        return self.monotonic() - self._seen_at > duration

    def _hold(self, written: JsonObject, requested_at: float) -> None:
        self._see(written)
        self._epoch = written["spec"]["leaseTransitions"]
        self._renewed_at = requested_at

    def _give_back(self) -> None:
        """Let another lead at once; if the write fails, the Lease expires."""
        namespace, name = self._place
        if self.epoch is None:
            return
        self._epoch = None
        try:
            raw = self.client.get(LEASES, name, namespace)
            if raw is not None and raw["spec"].get("holderIdentity") == self.identity:
                spec = {**raw["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
                self.client.replace(LEASES, {**raw, "spec": spec})
        except KubeError as error:
            _LOG.warning("lease %s/%s is not given back: %s", namespace, name, error)
