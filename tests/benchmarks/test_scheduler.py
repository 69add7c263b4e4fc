"""`python -m benchmarks.scheduler`: what it counts, prints and refuses."""

import copy
import gzip
import json

import pytest

from benchmarks.data import DATA_VARIABLE, data_file, data_folder
from benchmarks.scheduler import main, run
from kfp_placement_engine.exceptions import InputError, InputNotFoundError
from tests.support.kubernetes import container, node_object, pod_object


def row(total, **plugins):
    return {**plugins, "total": total}


@pytest.fixture
def recording():
    """Two equal nodes; the first of two pods ties, the second has one best."""
    image = {"TaintToleration": 300, "ImageLocality": 0, "DynamicResources": 0}
    small = {"cpu": "1", "memory": "2Gi"}

    def pod(name):
        return pod_object(name, phase="Pending", containers=[container(small)])

    def scores(fit, balance=75):
        plugins = {**image, "NodeResourcesFit": fit, "NodeResourcesBalancedAllocation": balance}
        return row(300 + fit + balance, **plugins)

    return {
        "kubernetes": "v1.36.3",
        "profile": "default",
        "cases": [
            {
                "case": "c1",
                "nodes": [node_object("n1"), node_object("n2")],
                "pods": [
                    {"pod": pod("a"), "node": "n2", "scores": {"n1": scores(87), "n2": scores(87)}},
                    {"pod": pod("b"), "node": "n1", "scores": {"n1": scores(87), "n2": scores(75)}},
                ],
            }
        ],
    }


@pytest.fixture
def written(tmp_path):
    def write(recording):
        path = tmp_path / "recording.json"
        path.write_text(json.dumps(recording), encoding="utf-8")
        return path

    return write


def test_everything_equal(recording, written, tmp_path, golden):
    """Exit code 0, the counts, and no difference; the tie is one of the best nodes."""
    lines: list[str] = []
    assert main(written(recording), lines.append) == 0
    text = "\n".join(lines)
    golden(text.replace(str(tmp_path), "FOLDER"))
    assert "v1.36.3" in text
    assert "2 of 2 pods" in text
    assert "4 of 4 pod-node pairs" in text
    assert "different" not in text


def test_a_wrong_score_is_shown(recording, written):
    """Exit code 1; the line names pod, node, both scores."""
    recording["cases"][0]["pods"][1]["scores"]["n2"]["NodeResourcesFit"] += 1
    lines: list[str] = []
    assert main(written(recording), lines.append) == 1
    (line,) = [line for line in lines if line.startswith("different")]
    assert "c1/b on n2" in line
    assert "'NodeResourcesFit': 76" in line
    assert "'NodeResourcesFit': 75" in line


def test_a_wrong_node_is_shown(recording, written, golden):
    recording["cases"][0]["pods"][1]["node"] = "n2"
    (difference,) = run(written(recording)).differences
    golden(difference)
    assert difference.startswith("c1/b: ")


def test_a_wrong_feasible_set_is_shown(recording, written, golden):
    recording["cases"][0]["nodes"][0]["spec"]["unschedulable"] = True
    report = run(written(recording))
    assert report.feasible.equal == 0
    golden(report.differences[0])
    assert "only ours: none" in report.differences[0]


def test_an_unschedulable_pod(recording, written):
    """`node: null` is a claim that no node fits."""
    entry = recording["cases"][0]["pods"][1]
    entry["node"], entry["scores"] = None, {}
    assert "only ours: n1, n2" in run(written(recording)).differences[0]
    entry["pod"]["spec"]["nodeSelector"] = {"disk": "none"}
    assert run(written(recording)).agrees


def test_an_unscored_pod_must_be_on_one_of_the_best(recording, written, golden):
    """Batching places a pod without scores although several nodes fit."""
    entry = recording["cases"][0]["pods"][1]
    entry["scores"] = {}
    report = run(written(recording))
    assert report.agrees
    assert report.batched.total == 1
    assert any("batching" in line for line in report.lines())
    entry["node"] = "n2"
    (difference,) = run(written(recording)).differences
    golden(difference)
    assert "without scores" in difference


def test_a_recording_without_scores_proves_nothing(recording, written):
    for entry in recording["cases"][0]["pods"]:
        entry["scores"] = {}
    lines: list[str] = []
    assert main(written(recording), lines.append) == 1
    assert any(line.startswith("NOTHING WAS SCORED") for line in lines)


@pytest.mark.parametrize("profile", [None, "", "stock", "default"])
def test_names_of_the_stock_profile(recording, written, profile):
    assert run(written({**recording, "profile": profile})).agrees
    del recording["profile"]
    assert run(written(recording)).agrees


def test_a_plugin_of_no_effect_is_not_missed(recording, written):
    """Another release may log plugins we do not know; they matter only if they score."""
    for entry in recording["cases"][0]["pods"]:
        for scores in entry["scores"].values():
            scores["SomethingNew"] = 0
    assert run(written(recording)).agrees
    recording["cases"][0]["pods"][0]["scores"]["n1"]["SomethingNew"] = 5
    assert not run(written(recording)).agrees


def test_a_sampled_search(written):
    """From 100 nodes on the recording holds a sample of the right size, in any order."""
    nodes = [node_object(f"n{index:03}") for index in range(250)]
    plugins = {"TaintToleration": 300, "NodeResourcesFit": 98, "ImageLocality": 0}
    sample = {f"n{index:03}": row(398, **plugins) for index in range(60, 180)}
    entry = {"pod": pod_object("a", phase="Pending"), "node": "n100", "scores": sample}
    case = {"case": "large", "nodes": nodes, "pods": [entry]}
    recording = {"kubernetes": "v1.36.3", "profile": "default", "cases": [case]}
    report = run(written(recording))
    assert report.agrees
    assert report.scores.total == 120
    del sample["n060"]
    assert run(written(recording)).feasible.equal == 0


def test_versions_are_read_from_the_recording(recording, written):
    """A 1.35 recording is held against 1.35's formulas; vendors' suffixes do not matter."""
    recording["kubernetes"] = "v1.35.4+k3s1"
    assert not run(written(recording)).agrees
    for entry in recording["cases"][0]["pods"]:
        for scores in entry["scores"].values():
            scores["total"] += 100 - scores["NodeResourcesBalancedAllocation"]
            scores["NodeResourcesBalancedAllocation"] = 100
    assert run(written(recording)).agrees


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda it: it.update(profile="mine"), "profile: 'mine' cannot be compared"),
        (lambda it: it.pop("kubernetes"), "kubernetes: '' is not a version"),
        (lambda it: it.update(cases=[]), "nothing to compare"),
        (lambda it: it["cases"][0]["nodes"].append(node_object("n1")), "'n1' appears twice"),
        (
            lambda it: it["cases"][0]["pods"][0].update(node="n9"),
            "'n9' is not one of the case's nodes",
        ),
        (lambda it: it["cases"][0]["pods"][0].update(node=None), "has no scores, though others"),
        (
            lambda it: it["cases"][0]["pods"][0]["pod"]["spec"].update(nodeName="n1"),
            "is bound already",
        ),
    ],
)
def test_malformed_recordings(recording, written, change, message):
    """The message names the place; nothing else than an input error is raised."""
    changed = copy.deepcopy(recording)
    change(changed)
    with pytest.raises(InputError, match=message):
        run(written(changed))


@pytest.mark.parametrize("content", [b"", b"[1, 2]", b'{"cases": '])
def test_other_files(tmp_path, content):
    path = tmp_path / "recording.json"
    path.write_bytes(content)
    with pytest.raises(InputError):
        run(path)


def test_compressed_recordings(recording, written):
    """A recording may be packed by gzip; a broken one is refused."""
    path = written(recording)
    packed = gzip.compress(path.read_bytes())
    path.write_bytes(packed)
    assert run(path).agrees
    for broken in (packed[:40], packed[:20] + b"?" + packed[21:]):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="not a complete gzip file"):
            run(path)


def test_where_the_data_is_looked_for(tmp_path, monkeypatch, recording, written):
    """A file, a folder with it, the data folder, the variable; else a message that says so."""
    path = written(recording)
    assert data_file(path, "set", "recording.json") == path
    assert data_file(tmp_path, "set", "recording.json") == path
    folder = tmp_path / "data" / "set"
    folder.mkdir(parents=True)
    (folder / "recording.json").write_bytes(path.read_bytes())
    assert data_file(tmp_path / "data", "set", "recording.json") == folder / "recording.json"
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "data"))
    assert data_file(None, "set", "recording.json") == folder / "recording.json"
    for missing in (tmp_path / "no.json", folder):
        with pytest.raises(InputNotFoundError):
            data_file(missing, "set", "other.json")
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(InputNotFoundError, match="nowhere"):
        data_folder()
