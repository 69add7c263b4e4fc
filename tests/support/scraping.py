"""Metrics of a process, as Prometheus would read them."""

import urllib.request

from prometheus_client.parser import text_string_to_metric_families

from kfp_placement_controller.metrics import PREFIX
from tests.controlplane.ports import LOOPBACK


def scraped(port: int, sample: str, **labels: str) -> float:
    """A metric of ours, summed over all labels that are not given.

    Args:
        port: of the process.
        sample: as scraped, without our prefix: `runs`, `api_writes_total`.
        labels: what its labels must be.
    """
    with urllib.request.urlopen(f"http://{LOOPBACK}:{port}/metrics", timeout=10) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    return sum(
        each.value
        for family in families
        for each in family.samples
        if each.name == f"{PREFIX}_{sample}" and labels.items() <= each.labels.items()
    )
