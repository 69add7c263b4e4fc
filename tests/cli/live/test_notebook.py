"""`kfp_placement.run(name)`: one cell of a notebook that follows a run."""

import pytest
from IPython.core.displaypub import CapturingDisplayPublisher
from IPython.core.interactiveshell import InteractiveShell

import kfp_placement
from kfp_placement import MarkValueError, PlacementError, UnknownStepError
from kfp_placement.live import notebook, watching
from kfp_placement.live.connection import ClusterApi
from kfp_placement.live.exceptions import ClusterAmbiguousError, ClusterForbiddenError
from tests.cli.live.conftest import NOW, modified, placement
from tests.support.fake_cluster import workflow
from tests.support.html_pages import parse_page

STATES = [["succeeded", 0, 10.4, 43.1], ["succeeded", 0, 49, 1251], ["running", 1, 1256]]
PREDICTING = placement(status={"progress": "2/3", "steps": STATES})
ENDED = placement(status={"phase": "Succeeded", "progress": "3/3", "makespan": "22m"})


@pytest.fixture
def the_run(connections, monkeypatch):
    """`run()` on the cluster of plain dicts, at a fixed time."""
    monkeypatch.setattr(notebook.Run.__init__, "__defaults__", (lambda: NOW,))
    monkeypatch.setattr(watching, "LOOK_SECONDS", 0.05)
    return kfp_placement.run


class Shell(InteractiveShell):
    """A kernel's shell, without the kernel."""

    kernel = object()

    def init_io(self):
        """Leave the streams alone."""


@pytest.fixture
def cell(tmp_path, monkeypatch):
    """What a notebook is sent, in order."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = Shell.instance()
    shell.display_pub = CapturingDisplayPublisher()
    yield shell.display_pub.outputs
    Shell.clear_instance()


def words_of(output):
    return " ".join(parse_page(output["data"]["text/html"]).text)


def test_a_run_is_one_line_of_text_and_a_small_table(the_run, golden):
    run = the_run("taxi-x7k2p")
    assert (run.namespace, run.name, run.phase) == ("team-a", "taxi-x7k2p", "Running")
    golden(repr(run), "line")
    golden(parse_page(run._repr_html_()).text, "table")


def test_the_cluster_is_the_one_that_is_named(connections, tmp_path):
    config = tmp_path / "config"
    kfp_placement.run("team-a/taxi-x7k2p", "other", kubeconfig=str(config), context="prod")
    assert connections == [(config, "prod")]


def test_watching_updates_one_cell(the_run, cluster, cell, capsys):
    cluster.streams = [modified(PREDICTING, ENDED)]
    run = the_run("taxi-x7k2p")
    run.watch()
    assert run.phase == "Succeeded"
    first, *others = cell
    assert not first.get("update")
    assert [output["update"] for output in others] == [True] * len(others)
    assert len({output["transient"]["display_id"] for output in cell}) == 1
    assert len(others) >= 2
    assert "Succeeded, 3/3 steps ended" in words_of(cell[-1])
    assert "train: succeeded" in words_of(cell[-1])
    assert capsys.readouterr().out == ""


def test_a_cell_in_which_nothing_changes_is_left_alone(the_run, cell):
    the_run("taxi-x7k2p").watch(timeout="400ms")
    # As it is, and that time is up.
    assert len(cell) == 2
    assert "Timed out; the run has not ended." in words_of(cell[-1])


def test_without_a_notebook_there_is_a_line_for_each_change(the_run, cluster, capsys, golden):
    cluster.streams = [modified(PREDICTING, ENDED)]
    the_run("taxi-x7k2p").watch()
    printed = capsys.readouterr().out
    golden(printed)


@pytest.mark.parametrize("in_notebook", [True, False])
def test_interrupting_stops_the_watching_and_says_so(
    the_run, request, capsys, monkeypatch, in_notebook
):
    outputs = request.getfixturevalue("cell") if in_notebook else []
    interrupts: list[type[BaseException]] = []

    def now():
        if interrupts:
            raise interrupts.pop()
        return NOW

    monkeypatch.setattr(notebook.Run.__init__, "__defaults__", (now,))
    run = the_run("taxi-x7k2p")
    interrupts.append(KeyboardInterrupt)
    run.watch()
    shown = words_of(outputs[-1]) if in_notebook else capsys.readouterr().out
    assert "Stopped watching; the run goes on." in shown
    assert run.phase == "Running"


def test_a_run_without_a_plan_is_watched_until_it_has_one(the_run, cluster, capsys, golden):
    cluster.put(workflow("new"))
    cluster.streams = [[("ADDED", placement("new", status={"phase": "Succeeded"}))]]
    run = the_run("new")
    assert (repr(run), run.phase) == ("<Run team-a/new: no plan yet>", "")
    run.watch()
    golden(capsys.readouterr().out)
    with pytest.raises(PlacementError, match="is there but has no plan"):
        run.explain()


def test_explaining_answers_as_the_command_does(the_run, live):
    run = the_run("taxi-x7k2p")
    answer = run.explain("train")
    assert repr(answer) == answer.rstrip("\n")
    assert answer == live("explain", "taxi-x7k2p", "train").stdout
    assert run.explain() == live("explain", "taxi-x7k2p").stdout


def test_what_is_wrong_is_one_clear_sentence(the_run, cluster, golden):
    run = the_run("taxi-x7k2p")
    with golden.error(UnknownStepError, "step"):
        run.explain("trainn")
    with golden.error(MarkValueError, "timeout"):
        run.watch(timeout="soon")
    with golden.error(PlacementError, "run"):
        the_run("nothing")
    for namespace in ("team-b", "team-c"):
        cluster.put(placement(namespace=namespace))
    with golden.error(ClusterAmbiguousError, "several"):
        the_run("taxi-x7k2p", "")
    cluster.refused["/"] = ClusterForbiddenError("may not")
    with pytest.raises(PlacementError, match="may not"):
        run.explain("train")


HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[2J"


def test_hostile_names_are_shown_and_do_nothing(the_run, cluster):
    raw = placement("hostile", status={"phase": "Running"})
    raw["metadata"]["annotations"] = {"pipelines.kubeflow.org/run_name": HOSTILE}
    raw["spec"]["steps"][0][0] = HOSTILE * 2000
    cluster.put(raw)
    run = the_run("hostile")
    for shown in (run._repr_html_(), repr(run)):
        assert "\u202e" not in shown
        assert "\x1b" not in shown
        assert len(shown) < 20_000
    assert "<img" not in run._repr_html_()


def test_a_wide_run_shows_what_goes_on_first(the_run, cluster):
    count = 3 * notebook.MAX_ROWS
    rows = [[f"step-{number}", 0, number, number + 1] for number in range(count)]
    states = [["succeeded", 0, 1, 2]] * (count - 1) + [["running", 0, 3]]
    cluster.put(placement("wide", spec={"steps": rows}, status={"steps": states}))
    words = " ".join(parse_page(the_run("wide")._repr_html_()).text)
    assert f"step-{count - 1}" in words
    assert f"{count - notebook.MAX_ROWS} more steps are not shown" in words


@pytest.mark.parametrize("name", [5, "", "  ", None])
def test_what_is_not_a_name_is_told_before_a_cluster_is_asked(monkeypatch, golden, name):
    monkeypatch.setattr(ClusterApi, "connect", lambda *_: pytest.fail("asked a cluster"))
    with golden.error(kfp_placement.UsageError):
        kfp_placement.run(name)
