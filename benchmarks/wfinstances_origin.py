"""First figures for the workflow instances, measured once with throwaway code.

The search was a single-threaded random-key local search of 6 s that started from HEFT; `kube` on
the mixed cluster is the mean over all 12 distinct orders of its nodes.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Origin:
    """Makespans of one file on one cluster, s; `search` is None where none was run."""

    kube: float
    heft: float
    search: float | None


_EQUAL = """
1000genome-chameleon-2ch-100k-001 563 517 470
airrflow-dirt02-001 617 567 560
bacass-dirt02-001 2150 2150 -
blast-chameleon-medium-001 5312 5258 5258
blast-chameleon-small-001 67.2 67.0 65.9
bwa-chameleon-small-001 133 131 131
chipseq-dirt02-001 1143 999 996
cycles-chameleon-1l-1c-9p-001 250 206 203
epigenomics-chameleon-hep-1seq-100k-001 155 155 152
epigenomics-chameleon-ilmn-1seq-100k-001 481 500 469
fetchngs-dirt02-001 25.3 20.0 18.0
helloworld-forkjoin-10-chameleon 406 406 -
hic-dirt02-001 275 275 275
methylseq-dirt02-001 210 203 203
montage-chameleon-2mass-005d-001 40.1 37.8 37.8
montage-chameleon-2mass-01d-001 69.1 68.5 67.5
montage-chameleon-dss-075d-001 1465 1455 1362
sarek-dirt02-001 310 310 310
scrnaseq-dirt02-001 800 800 800
seismology-chameleon-1000p-001 90.4 90.0 -
soykb-chameleon-10fastq-10ch-001 3975 3881 3846
srasearch-chameleon-10a-003 4807 3423 3423
"""

_MIXED = """
1000genome-chameleon-2ch-100k-001 381.9 207 205
airrflow-dirt02-001 556.0 302 275
bacass-dirt02-001 2567.8 1075 -
blast-chameleon-medium-001 1903.8 1785 1782
blast-chameleon-small-001 37.6 23.9 23.3
bwa-chameleon-small-001 113.3 57.3 57.3
chipseq-dirt02-001 1260.2 719 701
cycles-chameleon-1l-1c-9p-001 162.8 95.0 94.0
epigenomics-chameleon-hep-1seq-100k-001 167.9 79.3 78.8
epigenomics-chameleon-ilmn-1seq-100k-001 239.7 182 174
fetchngs-dirt02-001 13.7 7.5 7.0
helloworld-forkjoin-10-chameleon 433.6 203 -
hic-dirt02-001 327.8 137 137
methylseq-dirt02-001 222.5 102 102
montage-chameleon-2mass-005d-001 38.9 19.3 19.3
montage-chameleon-2mass-01d-001 37.6 33.3 32.9
montage-chameleon-dss-075d-001 721.9 554 536
sarek-dirt02-001 315.0 155 155
scrnaseq-dirt02-001 1035.4 400 400
seismology-chameleon-1000p-001 32.1 30.1 -
soykb-chameleon-10fastq-10ch-001 4094.5 1779 1750
srasearch-chameleon-10a-003 4722.6 1925 1925
"""


def _table(text: str) -> dict[str, Origin]:
    rows = (line.split() for line in text.strip().splitlines())
    return {
        name: Origin(float(kube), float(heft), None if search == "-" else float(search))
        for name, kube, heft, search in rows
    }


ORIGIN: Mapping[str, Mapping[str, Origin]] = {
    "3x2": _table(_EQUAL),
    "het 4x4": _table(_MIXED),
    "6 nodes": {},
}
"""Makespans by name of cluster and of file without `.json`; the last cluster has none."""
