#!/bin/sh
# Runs all tests this machine can run; `make test` is this script. Arguments are pytest's and choose
# among the tests; without any, the share of the code that the tests reach is judged too.
#
# WORKERS: how many processes for the tests without a control plane (default: 2).
# COVERAGE: `all` code is judged, or the `core` that plans and clusters rest on. Before Python 3.14
# measuring all more than doubles the tests' time: `core` is the default there, else `all`.
set -u
cd "$(dirname "$0")/.."

python=.venv/bin/python
failed=0
build=
reader=
log=$(mktemp)

finish() {
    for process in $build $reader; do
        kill "$process" 2>/dev/null
    done
    rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

run_pytest() { # ARGS
    "$python" -m pytest -ra "$@" && return
    # 5: none of the tests was chosen.
    [ $? -eq 5 ] || failed=1
}

default_coverage() {
    "$python" -c 'import sys; print("all" if sys.version_info >= (3, 14) else "core")'
}

# Sets $measured to pytest's options. The share of all code is judged by pytest itself (`fail_under`
# in pyproject.toml).
choose_measured() {
    measured=--cov
    [ "${COVERAGE:-$(default_coverage)}" = all ] && return
    measured=
    for module in contract fitness simulation; do
        measured="$measured --cov kfp_placement_engine.$module"
    done
}

# The core is tested in full.
judge_core() {
    engine=engine/kfp_placement_engine
    "$python" -m coverage report --fail-under 100 --show-missing --skip-covered \
        --include "$engine/contract/*,$engine/fitness.py,$engine/simulation.py" || failed=1
}

# The control plane's programs take minutes where they were never built: meanwhile the others run.
# Where they cannot be built, the tests that need them say why.
if [ $# -eq 0 ]; then
    "$python" -m tests.controlplane build >/dev/null 2>"$log" &
    build=$!
    choose_measured
    # shellcheck disable=SC2086 # several options
    run_pytest -n "${WORKERS:-2}" -m "not cluster" $measured --cov-report=
    judge_core
else
    run_pytest -n "${WORKERS:-2}" -m "not cluster" "$@"
fi

# In one process, for every process would start a control plane of its own. The first test that needs
# the programs waits for them; until then the builder's news are shown.
tail -n +1 -f "$log" &
reader=$!
run_pytest "$@" -n 0 --cluster -m cluster
exit "$failed"
