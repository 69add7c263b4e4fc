"""What is read of kubeconfigs besides the way to the API server."""

import yaml

from kfp_placement_kube.kubeconfig import read_contexts

CONFIG = {
    "current-context": "a",
    "contexts": [
        {"name": "a", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
        {"name": "b", "context": "oops"},
        {"name": "none"},
    ],
    "clusters": [{"name": "c", "cluster": {"server": "https://c.example"}}],
    "users": [{"name": "u", "user": {}}],
}


def test_a_malformed_context_keeps_nobody_from_the_others(tmp_path):
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(CONFIG))
    assert read_contexts(file) == ({"a": "team", "b": "", "none": ""}, "a")
