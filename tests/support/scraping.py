"""Metrics of our processes, as Prometheus would read them."""

import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from kfp_placement_controller.metrics import PREFIX
from tests.controlplane.ports import LOOPBACK

Labels = frozenset[tuple[str, str]]


@dataclass(frozen=True)
class Scraped:
    """The samples of one process at one moment.

    Attributes:
        samples: (name, labels) -> value.
    """

    samples: Mapping[tuple[str, Labels], float]

    def total(self, sample: str, **labels: str) -> float:
        """One of our metrics, summed over all labels that are not given; 0 without any.

        Args:
            sample: name as scraped, without our prefix: `runs`, `api_writes_total`.
            labels: labels that it must have.
        """
        return sum(value for _, value in self._matching(sample, labels))

    def values(self, sample: str, by: str, **labels: str) -> dict[str, float]:
        """One of our metrics, as `total` sums it, for every value of the label `by`."""
        sums: dict[str, float] = {}
        for has, value in self._matching(sample, labels):
            sums[has[by]] = sums.get(has[by], 0.0) + value
        return sums

    def buckets(self, sample: str, **labels: str) -> list[tuple[float, float]]:
        """A histogram: upper limits in seconds and how many are at or below, ascending."""
        counted = self.values(f"{sample}_bucket", "le", **labels)
        return sorted((float(limit), count) for limit, count in counted.items())

    def _matching(
        self, sample: str, labels: Mapping[str, str]
    ) -> Iterator[tuple[Mapping[str, str], float]]:
        for (name, has), value in self.samples.items():
            if name == f"{PREFIX}_{sample}" and labels.items() <= set(has):
                yield dict(has), value


def scrape(port: int) -> Scraped:
    """Ask a process for its metrics."""
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return Scraped(
        {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }
    )


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float | None:
    """The value below which that share lies, as Prometheus' `histogram_quantile` reckons it.

    Args:
        buckets: upper limits and how many are at or below, ascending, the last one infinite.
        share: between 0 and 1.

    Returns:
        None if nothing was counted; the last finite limit if the value lies beyond it.
    """
    if not buckets or not buckets[-1][1]:
        return None
    rank = share * buckets[-1][1]
    below, least = 0.0, 0.0
    for limit, count in buckets:
        if count >= rank and limit != float("inf"):
            return least + (limit - least) * (rank - below) / max(count - below, 1e-12)
        if limit == float("inf"):
            return least
        below, least = count, limit
    return least


def own_metric(sample: str, **labels: str) -> float:
    """One of our metrics as this process has it, named as in `Scraped.total`; 0 without any."""
    return REGISTRY.get_sample_value(f"{PREFIX}_{sample}", labels) or 0.0
