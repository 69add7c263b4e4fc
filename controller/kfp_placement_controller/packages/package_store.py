"""Store of the packages of runs, in memory only: each package once, and not too many bytes.

A module of its own because its limit protects the process, whatever is decided about questions.
"""

from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from hashlib import sha256

from kfp_placement_engine.model.keys import RunKey

MOST_BYTES = 64 * 2**20
"""Limit of all packages together; that of an average pipeline has 6 kB."""


@dataclass
class PackageStore:
    """Packages by run; runs with equal packages share one.

    Attributes:
        most_bytes: limit of all packages together, in bytes.
    """

    most_bytes: int = MOST_BYTES
    _packages: dict[bytes, bytes] = field(default_factory=dict)
    """Packages by their digests."""
    _digests: OrderedDict[RunKey, bytes] = field(default_factory=OrderedDict)
    """Digest of the package of each run; the run that was used least recently comes first."""

    @property
    def size_bytes(self) -> int:
        """Size of all packages together."""
        return sum(map(len, self._packages.values()))

    def get(self, run: RunKey) -> bytes:
        """Return the package of a run; b"" = the store has none."""
        digest = self._digests.get(run)
        return b"" if digest is None else self._packages[digest]

    def used(self, run: RunKey) -> None:
        """Note that the run still exists, so that the packages of others are dropped first."""
        if run in self._digests:
            self._digests.move_to_end(run)

    def put(self, run: RunKey, package: bytes) -> list[RunKey]:
        """Keep the package of a run; return the runs whose packages had to be dropped."""
        self.discard(run)
        digest = sha256(package).digest()
        self._packages.setdefault(digest, package)
        self._digests[run] = digest
        dropped: list[RunKey] = []
        while self.size_bytes > self.most_bytes:
            dropped.append(self._next_to_drop())
            self.discard(dropped[-1])
        return dropped

    def discard(self, run: RunKey) -> None:
        """Drop the package of a run, unless another run has the same."""
        digest = self._digests.pop(run, None)
        if digest is not None and digest not in self._digests.values():
            del self._packages[digest]

    def _next_to_drop(self) -> RunKey:
        """Return the run used least recently in the namespace that fills the most bytes."""
        filled: Counter[str] = Counter()
        for namespace, digest in {(run.namespace, each) for run, each in self._digests.items()}:
            filled[namespace] += len(self._packages[digest])
        fullest = max(filled, key=filled.__getitem__)
        return next(run for run in self._digests if run.namespace == fullest)
