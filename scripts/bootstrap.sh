#!/bin/sh
# Makes `.venv`: the four distributions, editable, with everything their tests and checks need, as
# `uv.lock` names it. Needs Python and a package index, nothing else.
#
#   scripts/bootstrap.sh            make or update .venv
#   scripts/bootstrap.sh uv ARGS    run the uv found or fetched, with this machine's index settings
set -eu
cd "$(dirname "$0")/.."

# The first uv that reads our lock file, and the one fetched where none is on PATH.
minimum_uv=0.8
fetched_uv=0.13.9
# What the lock file covers; newer Pythons are served by one that uv brings along.
supported='(3, 11) <= sys.version_info[:2] < (3, 15)'
brought_python=3.12

say() { printf '%s\n' "bootstrap: $*" >&2; }

python_satisfies() { # COMMAND CONDITION
    command -v "$1" >/dev/null 2>&1 &&
        "$1" -c "import sys; sys.exit(0 if $2 else 1)" >/dev/null 2>&1
}

first_python() { # CONDITION
    for candidate in ${PYTHON:-} python3 python3.14 python3.13 python3.12 python3.11 python; do
        if python_satisfies "$candidate" "$1"; then
            printf '%s' "$candidate"
            return
        fi
    done
}

uv_is_recent() { # COMMAND
    found=$("$1" --version 2>/dev/null | awk '{ print $2 }')
    printf '%s %s' "${found:-0}" "$minimum_uv" | awk '{
        split($1, have, "."); split($2, need, ".")
        exit !(have[1] + 0 > need[1] + 0 || (have[1] + 0 == need[1] + 0 && have[2] + 0 >= need[2] + 0))
    }'
}

fetch_uv() { # PYTHON
    rm -rf .uv-venv
    if "$1" -c 'import ensurepip, venv' 2>/dev/null; then
        say "no recent uv on PATH: installing uv $fetched_uv into .uv-venv with pip"
        if "$1" -m venv .uv-venv &&
            .uv-venv/bin/python -m pip install --quiet --disable-pip-version-check "uv==$fetched_uv"; then
            return
        fi
        rm -rf .uv-venv
    fi
    say "no recent uv on PATH, no pip: downloading uv $fetched_uv into .uv-venv"
    "$1" -m venv --without-pip .uv-venv && "$1" scripts/fetch_uv.py "$fetched_uv" .uv-venv/bin
}

python=$(first_python "$supported")
# An older one can still fetch uv, which then brings a newer one.
any_python=${python:-$(first_python 'sys.version_info >= (3, 8)')}

index_is_public=yes
if [ -n "$any_python" ]; then
    eval "$("$any_python" scripts/package_index.py)"
fi

if command -v uv >/dev/null 2>&1 && uv_is_recent uv; then
    uv=$(command -v uv)
elif [ -x .uv-venv/bin/uv ] && uv_is_recent .uv-venv/bin/uv; then
    uv=$PWD/.uv-venv/bin/uv
elif [ -z "$any_python" ]; then
    say "found neither uv nor Python."
    say "Debian, Ubuntu: apt install python3 python3-venv; or install uv: https://docs.astral.sh/uv/"
    exit 1
elif fetch_uv "$any_python"; then
    uv=$PWD/.uv-venv/bin/uv
else
    rm -rf .uv-venv
    say "could not get uv (the reason is above)."
    say "Debian, Ubuntu: apt install python3-venv ca-certificates; or install uv: https://docs.astral.sh/uv/"
    exit 1
fi

if [ "${1:-}" = uv ]; then
    shift
    exec "$uv" "$@"
fi

if [ -z "$python" ]; then
    say "no Python from 3.11 to 3.14 here: uv brings $brought_python"
    if ! "$uv" python install "$brought_python"; then
        say "uv could not bring a Python. Debian 12, Ubuntu 24.04: apt install python3 python3-venv;"
        say "Ubuntu 22.04: apt install python3.11 python3.11-venv"
        exit 1
    fi
    python=$brought_python
fi
# A .venv that exists keeps its Python unless that is gone or not supported.
if ! python_satisfies .venv/bin/python "$supported"; then
    "$uv" venv --quiet --clear --python "$python" .venv
fi

# Whatever environment is active or chosen elsewhere: ours is .venv.
unset VIRTUAL_ENV
export UV_PROJECT_ENVIRONMENT=.venv

everything='--all-packages --all-extras --all-groups'

# The lock file names files on the public index. Through another index the same versions and hashes
# are asked for by name.
# shellcheck disable=SC2086
install_from_lock() { "$uv" sync --quiet --frozen $everything; }
# shellcheck disable=SC2086
install_by_name() {
    mkdir -p .venv
    "$uv" export --quiet --frozen --no-emit-workspace $everything --output-file .venv/locked.txt &&
        "$uv" pip sync --quiet --python .venv/bin/python --require-hashes .venv/locked.txt &&
        "$uv" pip install --quiet --python .venv/bin/python --no-deps \
            --editable . --editable ./engine --editable ./kube --editable ./controller
}

if [ "$index_is_public" = yes ]; then
    first=install_from_lock second=install_by_name
else
    first=install_by_name second=install_from_lock
fi
say "installing what uv.lock names into .venv (under a minute, more on a slow line) ..."
if ! "$first"; then
    say "trying another way"
    "$second"
fi

# The first command is as quick as later ones, even where Python may not write what it has compiled.
.venv/bin/python -m compileall -qq kfp_placement engine/kfp_placement_engine kube/kfp_placement_kube \
    controller/kfp_placement_controller >/dev/null ||
    say "the code could not be compiled ahead; commands start more slowly"
