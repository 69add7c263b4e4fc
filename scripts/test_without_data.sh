#!/bin/sh
# Tests a plain clone: no third-party data lies beside it. All tests are collected there, and the modules that read
# such data, or a benchmark's, are run. The clone is of the last commit and uses the .venv and kernel that are here.
#
# WORKERS: how many processes for the tests (default: 2).
set -eu
cd "$(dirname "$0")/.."
unset KFP_PLACEMENT_DATA

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

git clone --quiet . "$folder/clone"
ln -s "$PWD/.venv" "$folder/clone/.venv"
ln -s "$PWD"/engine/kfp_placement_engine/_kernel.* "$folder/clone/engine/kfp_placement_engine/"
cd "$folder/clone"

pytest() {
    .venv/bin/python -m pytest -q -p no:cacheprovider "$@"
}

pytest -n 0 --collect-only >"$folder/collected" || {
    tail -n 40 "$folder/collected"
    exit 1
}
# The module that finds the data, those of tests that skip without, and the benchmarks that cannot do without.
reading='benchmarks\.data import|tests\.support\.(data|run_data)|from benchmarks import .*(j30|wfinstances)'
helpers=$(grep -rlE "$reading" tests --include='*.py' | grep -v '/test_' | sed 's|.*/||; s|\.py$||' | paste -sd '|' -)
modules=$(grep -rlE "$reading|\.($helpers) import" tests --include='test_*.py')
# shellcheck disable=SC2086 # No name has a blank.
pytest -n "${WORKERS:-2}" -m "not cluster and not slow" $modules
