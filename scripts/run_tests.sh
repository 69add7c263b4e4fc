#!/bin/sh
# Runs all tests this machine can run; `make test` is this script. Arguments are pytest's and choose
# among the tests; without any, the share of the code that the tests reach is judged too.
#
# WORKERS: how many processes for the tests (default: 2); those on a control plane get one more.
# CLUSTER: `yes` also runs the tests on a control plane, which take longer than all others (default: `no`).
# COVERAGE: `yes` judges it, `no` does not. Before Python 3.14 measuring more than doubles the tests'
# time: there the default is `no`.
set -u
cd "$(dirname "$0")/.."

python=.venv/bin/python
failed=0
build=
reader=
log=$(mktemp)

finish() {
    [ -z "$build" ] || kill "$build" 2>/dev/null
    # Nothing less: a gentler signal is lost while the reader is not yet tail but a copy of this shell.
    [ -z "$reader" ] || kill -9 "$reader" 2>/dev/null
    rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

run_pytest() { # ARGS
    "$python" -m pytest -ra "$@" && return
    # 5: none of the tests was chosen.
    [ $? -eq 5 ] || failed=1
}

judge_coverage_here() {
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 14))'
}

# The share of all code is judged by pytest itself (`fail_under` in pyproject.toml). What plans and
# clusters rest on is tested in full.
judge_core() {
    engine=engine/kfp_placement_engine
    "$python" -m coverage report --fail-under 100 --show-missing --skip-covered \
        --include "$engine/contract/*,$engine/model/*,$engine/search/fitness.py,$engine/search/simulation.py" || failed=1
}

# Without a control plane its tests are collected anyway, and say why they are skipped.
run_unit_tests() { # ARGS
    if with_cluster; then
        set -- -m "not cluster" "$@"
    fi
    # Each process begins with a half of its own, so that what a module prepares is prepared once;
    # the one that is ready first takes from the others.
    run_pytest -n "${WORKERS:-2}" --dist worksteal "$@"
}

# The control plane's programs take minutes where they were never built: meanwhile the others run.
# Where they cannot be built, the tests that need them say why.
with_cluster() {
    [ "${CLUSTER:-no}" = yes ]
}

if [ $# -eq 0 ]; then
    if with_cluster; then
        "$python" -m tests.controlplane build >/dev/null 2>"$log" &
        build=$!
    fi
    if [ "${COVERAGE:-}" = yes ] || { [ -z "${COVERAGE:-}" ] && judge_coverage_here; }; then
        run_unit_tests --cov --cov-report=
        judge_core
    else
        run_unit_tests
    fi
else
    run_unit_tests "$@"
fi

with_cluster || exit "$failed"

# Every process starts a control plane of its own, so it gets whole files, in their order: sorted by
# their number of tests the longest would come last. The first test that needs the programs waits for
# them; until then the builder's output is shown. They wait for a third of their time: hence one process more.
tail -n +1 -f "$log" &
reader=$!
run_pytest "$@" -n "$((${WORKERS:-2} + 1))" --dist loadfile --no-loadscope-reorder --cluster -m cluster
exit "$failed"
