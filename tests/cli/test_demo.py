from tests.support.html_pages import parse_page


def test_a_stranger_is_led_through(run, tmp_path):
    result = run("demo", "--budget", "50ms")
    assert result.exit_code == 0, result.stderr
    for words in (
        'place(predict(...), type="Predict", location="HOME-EDGE", max_latency="20ms")',
        "HOME-EDGE within 20 ms",
        "kube-default",
        "but kube-default breaks a latency rule",
        "lowest round trip to HOME-EDGE",
        "kfp-placement plan pipeline.yaml --cluster cluster.yaml -o wide",
        f"Report with time line and graph: {tmp_path / 'taxi-plan.html'}",
    ):
        assert words in result.stdout
    page = parse_page((tmp_path / "taxi-plan.html").read_text("utf-8"))
    assert "Time line" in page.text
    assert max(map(len, result.stdout.splitlines())) <= 130


def test_predict_goes_near_the_users(run):
    lines = [line.split() for line in run("demo", "--budget", "50ms").stdout.splitlines()]
    assert ["HOME-EDGE", "home-edge-node", "9.8", "ms"] in [line[:4] for line in lines]
    assert ["NITLAB-EDGE", "nitlab-edge-node", "0.306", "ms"] in [line[:4] for line in lines]
    assert ["NITOS-CLOUD", "nitos-cloud-node", "0.289", "ms"] in [line[:4] for line in lines]


def test_where_the_report_goes(run, tmp_path):
    assert run("demo", "--budget", "50ms", "--output", "mine.html").exit_code == 0
    assert [file.name for file in tmp_path.iterdir()] == ["mine.html"]
    assert run("demo", "--output", "no/such/folder.html").exit_code == 3
