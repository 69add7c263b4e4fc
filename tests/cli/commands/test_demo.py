import pytest

from tests.support.html_pages import parse_page

STORIES = {
    "unequal-steps": (
        '@placed(type="Training", duration="24m", cpu=3, memory="4Gi")',
        "The default scheduler: 40m38s\n",
        "The plan: 29m2s, 28.5% shorter\n",
    ),
    "taxi": (
        'place(predict(...), type="Predict", location="HOME-EDGE", max_latency="20ms")',
        "HOME-EDGE within 20 ms",
        "but kube-default breaks a latency rule",
        "lowest round trip to HOME-EDGE",
        "0.306 ms",
    ),
}


@pytest.mark.parametrize("sample", STORIES)
def test_a_stranger_sees_what_a_plan_is_worth(run, tmp_path, sample):
    stdout = run.output("demo", sample, "--budget", "50ms")
    report = tmp_path / f"{sample}-plan.html"
    for words in (
        *STORIES[sample],
        "kfp-placement plan pipeline.yaml --cluster cluster.yaml -o wide",
        f"Report with time line and graph: {report}",
    ):
        assert words in stdout
    assert "Time line" in parse_page(report.read_text("utf-8")).text
    assert max(map(len, stdout.splitlines())) <= 130


def test_the_longest_step_starts_last_by_default_and_first_in_the_plan(run):
    printed = run.output("demo", "--budget", "50ms")
    default, plan = printed.split("The plan: ")
    late, early = (drawn_at(text, "xgboost") for text in (default, plan))
    assert early < drawn_at(default, "neighbours") < late


def drawn_at(text, step):
    """The column at which a step's bar begins."""
    (line,) = [line for line in text.splitlines() if f"{step}---" in line]
    return line.index(step)


@pytest.mark.parametrize("sample", STORIES)
def test_where_the_report_goes(run, tmp_path, sample):
    assert run("demo", sample, "--budget", "50ms", "--output", "mine.html").exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["mine.html"]
    assert run("demo", sample, "--output", "no/such/folder.html").exit_code == 3


def test_an_unknown_sample_is_refused(run):
    assert "'unequal-steps', 'taxi'" in run.message(2, "demo", "taxis")
