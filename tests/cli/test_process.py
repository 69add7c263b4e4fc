"""What only a process of its own shows: imports, signals, pipes, terminals."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CLUSTER, RUN
from tests.support.terminals import in_terminal

PROGRAM = [sys.executable, "-c", "from kfp_placement.cli import main; main()"]
HEAVY = (
    *("kfp", "numpy", "numpy.ma", "numba", "yaml", "pydantic", "kubernetes", "google"),
    *("jsonschema", "kfp_placement_engine.plans.what_if_changes"),
    "kfp_placement.clusters.download",
)

WATCHED = """
import sys
from kfp_placement.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    loaded = [name for name in {heavy!r} if name in sys.modules]
    print("LOADED", loaded, "CODE", end.code)
"""


def ended(*command, stdout=subprocess.PIPE, **environment):
    """A process that has ended, and what it has written."""
    return subprocess.run(
        command,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def program(*arguments, **options):
    """The program, run with these arguments."""
    return ended(*PROGRAM, *arguments, **options)


def loaded_by(*arguments, **environment):
    source = WATCHED.format(arguments=list(arguments), heavy=HEAVY)
    return ended(sys.executable, "-c", source, **environment).stdout.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [
        *(["--help"], ["--version"], ["completion", "zsh"]),
        *([command, "--help"] for command in ("plan", "check", "cluster", "demo")),
        *([command, "--help"] for command in ("list", "explain", "watch", "release")),
    ],
    ids=" ".join,
)
def test_help_loads_nothing_heavy(arguments):
    assert loaded_by(*arguments) == "LOADED [] CODE 0"


def test_completion_loads_nothing_heavy():
    done = loaded_by(
        "plan",
        _KFP_PLACEMENT_COMPLETE="bash_complete",
        COMP_WORDS="kfp-placement plan --comp",
        COMP_CWORD="2",
    )
    assert done == "LOADED [] CODE 0"


def test_reading_a_file_does_not_load_kfp():
    line = loaded_by("check", RUN)
    assert "'kfp'" not in line
    assert line.endswith("CODE 0")


@pytest.mark.parametrize("cluster", [["--cluster", CLUSTER], []])
def test_a_plan_loads_no_library_that_it_does_not_use(cluster):
    line = loaded_by("plan", RUN, *cluster)
    assert line == "LOADED ['numpy', 'yaml'] CODE 0"


def test_exit_codes_reach_the_shell():
    for arguments, code in (
        (["--version"], 0),
        ([], 2),
        (["nonsense"], 2),
        (["check", "gone.yaml"], 3),
        (["check", os.devnull], 1),
    ):
        assert program(*arguments).returncode == code


def test_interrupt():
    # Python takes interrupts only if its parent did: not in a shell's background.
    listening = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
    with subprocess.Popen(
        [sys.executable, "-c", listening + PROGRAM[-1], "plan", RUN, "-c", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        # More than a pipe holds: all is written only when the program has begun to read.
        process.stdin.write("#" * 2**20)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        # Closes the pipe, so that a read that was about to begin ends too.
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (out, err.strip()) == ("", "Interrupted.")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["--help"], "the output"),
        (["check", RUN], "the output"),
        (["check", RUN, "-o", "json", "--output", "/dev/full"], "/dev/full"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "",
)
def test_a_full_disk_is_an_ordinary_error(command, place):
    with open("/dev/full", "w") as full:
        done = program(*command, stdout=full)
    assert done.stderr == f"Error: {place}: cannot be written: No space left on device\n"
    assert done.returncode == 1


def test_a_file_that_does_not_fit_leaves_nothing_behind(tmp_path):
    target = tmp_path / "check.json"
    target.write_text("before")
    command = [*PROGRAM, "check", RUN, "-o", "json", "--output", str(target)]
    done = ended("/bin/sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command)
    assert done.stderr == f"Error: {target}: cannot be written: File too large\n"
    assert done.returncode == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_a_reader_that_goes_away():
    beginning = ["/bin/sh", "-c", '"$@" | head -c 1', "sh", *PROGRAM, "plan"]
    assert ended(*beginning, "--help").stderr == ""
    done = ended(*beginning, RUN, "-c", CLUSTER, "--budget", "50ms", "-o", "html")
    assert (done.stdout, done.stderr) == ("<", "")


def test_colour_and_progress_on_a_terminal():
    command = [*PROGRAM, "plan", RUN, "-c", CLUSTER, "--budget", "400ms"]
    text, code = in_terminal(command, COLUMNS="100", TERM="xterm")
    assert code == 0
    assert "\x1b[1mtaxi: " in text
    assert "\r\x1b[K" in text  # the live line, and its end
    assert text.rindex("\r\x1b[K") < text.index("SCHEDULE")


def test_output_without_unicode():
    command = ["demo", "--budget", "50ms", "--output", os.devnull]
    done = program(*command, PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    done = program("completion", shell)
    assert "_KFP_PLACEMENT_COMPLETE" in done.stdout
    assert f"{shell}_complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("kfp-placement pl", ["plan"]),
        ("kfp-placement plan --comp", ["--compare"]),
        ("kfp-placement plan --compare heft,f", ["heft,fifo"]),
        ("kfp-placement plan -o h", ["html"]),
    ],
)
def test_completion(words, expected):
    done = program(
        _KFP_PLACEMENT_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
    )
    assert [line.split(",", 1)[1] for line in done.stdout.splitlines()] == expected


def test_called_as_a_plugin_of_kubectl(tmp_path):
    program = tmp_path / "kubectl-placement"
    program.write_text(
        f"#!{sys.executable}\nfrom kfp_placement.cli import main\nmain()\n", encoding="utf-8"
    )
    program.chmod(0o755)
    done = ended(program, "plan", "--help")
    assert done.stdout.startswith("Usage: kubectl placement plan [OPTIONS] RUN")


def test_both_programs_are_installed():
    scripts = Path(sys.executable).parent
    for name, usage in (
        ("kfp-placement", "Usage: kfp-placement "),
        ("kubectl-placement", "Usage: kubectl placement "),
    ):
        if not (scripts / name).exists():
            pytest.skip("the package is not installed in this environment")
        assert ended(scripts / name, "--help").stdout.startswith(usage)


def test_every_command_has_examples():
    for command in ("plan", "check", "cluster", "demo", "completion"):
        help_text = program(command, "--help").stdout
        assert re.search(rf"Examples:\n\s+.*kfp-placement {command}|\n.*\| ?kfp", help_text)
