"""No kubeconfig, a bad one, nobody there: one sentence each, with a remedy."""

import os
import re
import subprocess
import sys

import pytest
import yaml

import kfp_placement
from kfp_placement import PlacementError, preview
from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterError, ClusterUnreachableError
from kfp_placement_kube.kinds import PODS
from tests.cli.conftest import RUN
from tests.controlplane.certificates import CertificateAuthority
from tests.support.web_server import sending, web_server


def kubeconfig(folder, server="https://127.0.0.1:9", **changes):
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [
            {"name": "prod", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}},
            {"name": "test", "context": {"cluster": "c", "user": "u"}},
        ],
        "current-context": "prod",
        **changes,
    }
    path = folder / "kubeconfig.yaml"
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture
def nothing_around(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)


@pytest.mark.usefixtures("nothing_around")
def test_no_kubeconfig(run, monkeypatch, golden):
    golden(run.message(3, "list"), "none")
    monkeypatch.setenv("KUBECONFIG", "gone.yaml:gone-too.yaml")
    golden(run("list").stderr, "named by the variable")
    golden(run("list", "--kubeconfig", "gone.yaml").stderr, "named by the option")


def test_no_kubeconfig_is_said_before_anything_heavy_is_imported(tmp_path):
    heavy = ["kubernetes", "urllib3", "pydantic", "numpy", "kfp", "yaml"]
    program = (
        "import sys\n"
        "from kfp_placement.cli import main\n"
        "try: main()\n"
        f"finally: print(*[name for name in {heavy!r} if name in sys.modules])"
    )
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    result = subprocess.run(
        [sys.executable, "-c", program, "list"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout.split()) == (3, [])
    assert "no kubeconfig" in result.stderr


@pytest.mark.parametrize("command", [["plan"], ["check"]], ids=" ".join)
@pytest.mark.usefixtures("nothing_around")
def test_a_live_cluster_needs_one_too(run, command):
    assert "no kubeconfig" in run.message(3, *command, "run.yaml", "--cluster", "live")


@pytest.mark.usefixtures("nothing_around")
def test_each_way_in_names_the_option_that_it_has():
    with pytest.raises(PlacementError, match=r"set KUBECONFIG, or name a file with kubeconfig=$"):
        kfp_placement.run("taxi")
    with pytest.raises(PlacementError, match=r"set KUBECONFIG$"):
        preview(RUN, "live")


def test_a_kubeconfig_without_a_live_cluster(run, golden):
    golden(run.message(2, "plan", "run.yaml", "--cluster", "c.yaml", "--context", "prod"))


def test_contexts(tmp_path, run, golden):
    path = kubeconfig(tmp_path)
    assert ClusterApi.connect(path).namespace == "team-a"
    assert ClusterApi.connect(path, "test").namespace == "default"
    stderr = run.message(3, "list", "--kubeconfig", path, "--context", "staging")
    golden(stderr.replace(str(path), "FILE"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{: ",
        "contexts: 1",
        "contexts: [1]\ncurrent-context: a",
        "contexts: [{name: a}]\ncurrent-context: a",
        "contexts: [{name: a, context: {cluster: x, user: y}}]\ncurrent-context: a",
        "\x00\xff",
    ],
)
def test_malformed_kubeconfigs(tmp_path, run, text):
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="latin-1")
    stderr = run.message(1, "list", "--kubeconfig", path)
    assert f"{path}: no usable kubeconfig" in stderr
    assert not re.search("' object|indices|iterable|attribute", stderr.split("kubeconfig:")[1])
    assert len(stderr.splitlines()) == 1


def test_nobody_there(tmp_path, run):
    stderr = run.message(1, "list", "--kubeconfig", kubeconfig(tmp_path))
    assert "no answer from https://127.0.0.1:9 (context prod): Failed to establish" in stderr
    assert "is it up, and can it be reached from here?" in stderr


def answering(body):
    """An HTTP server on this machine that has this for a pod and for all pods."""
    return web_server(dict.fromkeys(("/api/v1/pods", "/api/v1/pods/p"), sending(body)))


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"[" * 100_000, b"\xff"], ids=repr)
@pytest.mark.parametrize("method", ["get", "stream"])
def test_what_is_no_api_server(tmp_path, body, method, monkeypatch):
    with answering(body + b"\n") as address:
        cluster = ClusterApi.connect(kubeconfig(tmp_path, address))
        with pytest.raises(ClusterUnreachableError, match="does not answer as an API server"):
            list(getattr(cluster, method)(PODS, "p"))


def test_a_certificate_of_nobody_we_know(tmp_path, run):
    """It did answer: nobody needs to look whether it is up."""
    pair = CertificateAuthority(tmp_path).server("somebody")
    with web_server({}, pair) as address:
        result = run("list", "--kubeconfig", kubeconfig(tmp_path, address))
    assert result.exit_code == 1
    assert f"{address} (context prod) answers, but its certificate cannot" in result.stderr
    assert "certificate verify failed" in result.stderr
    assert "is it up" not in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_answers_have_a_limit(tmp_path, monkeypatch, end):
    monkeypatch.setattr("kfp_placement.live.connection.MAX_ANSWER_BYTES", 100)
    monkeypatch.setattr("kfp_placement.live.connection.MAX_LINE_BYTES", 100)
    with answering(b"{" + b" " * 200 + b"}" + end) as address:
        cluster = ClusterApi.connect(kubeconfig(tmp_path, address))
        with pytest.raises(ClusterUnreachableError, match="more than 100 bytes"):
            cluster.get(PODS, "p")
        with pytest.raises(ClusterUnreachableError, match="a line of more than 100 bytes"):
            list(cluster.stream(PODS, ""))


def test_a_server_that_starts_is_asked_again(tmp_path, monkeypatch):
    """API servers put lists off with 429 until they have read their storage."""
    monkeypatch.setattr("kfp_placement_kube.transport.LONGEST_RETRY_AFTER_SECONDS", 0.0)
    put_off = sending(b'{"message": "not now"}', status=429, Retry_After="3600")
    pod = sending(b'{"metadata": {"name": "p"}}')
    answers = [put_off, put_off, pod] + [put_off] * 4

    def next_answer(request):
        answers.pop(0)(request)

    with web_server({"/api/v1/pods/p": next_answer}) as address:
        cluster = ClusterApi.connect(kubeconfig(tmp_path, address))
        assert cluster.get(PODS, "p") == {"metadata": {"name": "p"}}
        with pytest.raises(ClusterError, match="not now"):
            cluster.get(PODS, "p")
    assert not answers


def test_pages_are_small_enough_for_whole_workflows(tmp_path):
    """An answer has room for 250 objects of half a megabyte."""
    asked = []

    def page(request):
        asked.append(request.path)
        sending(b'{"metadata": {"resourceVersion": "7"}}')(request)

    with web_server({"/api/v1/pods": page}) as address:
        cluster = ClusterApi.connect(kubeconfig(tmp_path, address))
        list(cluster.pages(PODS))
        list(cluster.pages(PODS, limit=7))
    assert [re.findall(r"limit=(\d+)", path) for path in asked] == [["250"], ["7"]]
