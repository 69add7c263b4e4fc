"""A dump of 100 MB: read with progress, in bounded memory."""

import json
import subprocess
import sys

import pytest

from tests.support.kubernetes import container, node_object, pod_object

_READ = """
import resource, sys
from kfp_placement_engine.readers.cluster_file import read_cluster_file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
shares = []
cluster = read_cluster_file(sys.argv[1], progress=lambda share, text: shares.append(share))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
unit = 1 if sys.platform == "darwin" else 1024
pods = sum(node.used["pods"] for node in cluster.nodes)
print(len(cluster.nodes), pods, len(shares), peak * unit)
"""


def busy_pod(index: int, nodes: int, filler: int):
    """A pod that carries `filler` bytes of environment and arguments."""
    env = [{"name": f"V{number}", "value": "x" * 100} for number in range(filler // 200)]
    main = container({"cpu": "100m"}, env=env, args=["y" * (filler // 2)])
    return pod_object(f"p{index}", f"n{index % nodes}", containers=[main])


@pytest.mark.slow
def test_a_hundred_megabytes(tmp_path):
    """At most ten times the file's size, most of it the text itself; dozens of progress calls."""
    path = tmp_path / "dump.json"
    with path.open("w", encoding="utf-8") as stream:
        for index in range(1_000):
            stream.write(json.dumps(node_object(f"n{index}"), indent=2))
        for index in range(5_000):
            stream.write(json.dumps(busy_pod(index, 1_000, 16_000), indent=2))
    size = path.stat().st_size
    assert size > 100e6
    done = subprocess.run(
        [sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, check=True
    )
    nodes, pods, calls, peak_bytes = (int(word) for word in done.stdout.split())
    assert (nodes, pods) == (1_000, 5_000)
    assert calls > 20
    assert peak_bytes < 10 * size
