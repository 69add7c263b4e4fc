# Every command of this repository. `make` alone shows them.

SHELL := /bin/sh
.DEFAULT_GOAL := help

BIN := .venv/bin
# Test processes at a time.
WORKERS ?= 2
# More for pytest, such as PYTEST_ARGS="-k volumes".
PYTEST_ARGS ?=
# How long fuzz looks, such as 90s, 5m or 1h30m.
FUZZ_TIME ?= 5m
# More for the demos on a cluster: --keep (to try commands on it), --shorter 30; for demo-cluster also taxi (another
# sample), taxi --location NITLAB-EDGE.
DEMO_ARGS ?=
# More for bench-cluster: --clusters thesis, or --argo-controller and --argo-crds as in CONTRIBUTING.md.
BENCH_ARGS ?=
PUBLIC_INDEX := https://pypi.org/simple
DISTRIBUTIONS := pyproject.toml engine/pyproject.toml kube/pyproject.toml controller/pyproject.toml

KERNEL := engine/kfp_placement_engine/_kernel.$(if $(filter Darwin,$(shell uname)),dylib,so)
KERNEL_SOURCES := $(wildcard engine/kernel/*.[ch]) engine/hatch_build.py
# Compiling again takes half a second when Zig keeps what it has made.
COMPILE := ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/.venv/zig-cache $(BIN)/python engine/hatch_build.py

# Tests start hundreds of Python processes: each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# Building a control plane, and running it, takes less CPU with more memory.
test test-cluster: export GOGC ?= 200

.PHONY: help setup kernel demo taxi format lint typecheck imports regenerate test fuzz test-cluster \
	test-vscode screenshots controlplane demo-cluster demo-queue verify bench bench-cluster bench-paper \
	bench-scale bench-demand bench-exact bench-j30 bench-learning bench-many-runs bench-queue bench-rolling bench-scheduler \
	bench-speed bench-suite bench-tune bench-under-attack bench-wfinstances bench-what-if lock build clean

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-16s %s\n", $$1, $$2 }' Makefile

setup: .venv/.complete ## make .venv with everything (finds or fetches uv)
	@$(MAKE) --silent $(KERNEL)

# Written last, so that an interrupted setup is done again.
.venv/.complete: uv.lock $(DISTRIBUTIONS) scripts/bootstrap.sh
	@scripts/bootstrap.sh
	@touch $@

# After .venv, which brings the library along: only then make sees whether it is up to date.
$(KERNEL): $(KERNEL_SOURCES)
	@$(COMPILE)

taxi: setup ## train the taxi sample's model for longer and longer: errors, times, sizes (minutes)
	@$(BIN)/python -m benchmarks.taxi

kernel: .venv/.complete ## compile the engine's C kernel in place (CC and CFLAGS are respected)
	@$(COMPILE)

demo: setup ## set up, then plan a sample beside the default scheduler and write its report
	@$(BIN)/kfp-placement demo

format: setup ## format the code and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

lint: setup ## check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

typecheck: setup ## check types with mypy, strict
	@$(BIN)/mypy

imports: setup ## check who may import whom
	@$(BIN)/lint-imports

test: setup ## set up, then run the tests this machine can run (CLUSTER=yes: also on a control plane)
	@WORKERS=$(WORKERS) scripts/run_tests.sh $(PYTEST_ARGS)

fuzz: setup ## try new examples for FUZZ_TIME (5m), round after round, and print those that fail a test
	@FUZZ_TIME='$(FUZZ_TIME)' WORKERS=$(WORKERS) $(BIN)/python scripts/fuzz.py $(PYTEST_ARGS)

# Every process starts a control plane of its own, and often waits: hence one more.
test-cluster: setup ## run only the tests that need a real control plane (Go builds it once: minutes)
	@$(BIN)/python -m pytest -ra -n $$(($(WORKERS) + 1)) --dist loadfile --no-loadscope-reorder --cluster -m cluster $(PYTEST_ARGS)

# Needs Node 20 with npm, and Chromium.
test-vscode: setup ## look at the notebook view in a real VS Code (npm builds it once: 2 minutes, 313 MB)
	@$(BIN)/python -m tests.renderers.vscode
	@VSCODE=yes $(BIN)/python -m pytest -ra tests/renderers/test_vscode.py $(PYTEST_ARGS)

screenshots: setup ## make the pictures of the documentation again (needs Chromium)
	@$(BIN)/python -m tests.renderers.screenshots

controlplane: setup ## start a control plane by hand, print its kubeconfig, stop it at Ctrl-C
	@$(BIN)/python -m tests.controlplane start

demo-cluster: setup ## run a sample on a real control plane, by default and with gates (Go builds it once: minutes)
	@$(BIN)/python -m tests.controller.demo_cluster $(DEMO_ARGS)

demo-queue: setup ## let three runs wait for one GPU in a queue of whole runs on a real control plane (2 minutes)
	@$(BIN)/python -m tests.controller.demo_queue $(DEMO_ARGS)

# The texts of tests/.../golden/test_it.yaml are those of tests/.../test_it.py.
regenerate: setup ## write again what is made from code: the samples' packages, the demo's copies, the tutorial's notebook, golden texts
	@REGENERATE=1 $(BIN)/python -m pytest -q -m golden tests/samples/test_golden_packages.py \
		tests/docs/test_tutorial.py tests/docs/test_snippets.py \
		$$(find tests -path '*/golden/test_*.yaml' | sed 's|golden/\(.*\)\.yaml$$|\1.py|' | sort | xargs ls 2>/dev/null)

# One after another, so that a failure shows as early as possible, and in files that were just made.
verify: ## make generated files again, run all checks; nothing may be left uncommitted
	@for target in regenerate lint typecheck imports test; do \
		COVERAGE=yes $(MAKE) --no-print-directory $$target || exit; \
	done
	@test -z "$$(git status --porcelain)" || { git status --short; exit 1; }

# Committed tables: benchmarks/README.md says what they show. SEEDS and BUDGET make a run shorter.
bench: bench-paper bench-wfinstances bench-scale bench-what-if bench-demand bench-queue ## make the tables of benchmarks/results again (1.5 hours)

bench-paper: setup ## the paper's experiment: 20 seeds, 10 s each (40 minutes)
	@$(BIN)/python -m benchmarks.paper --seeds $(or $(SEEDS),20) --budget $(or $(BUDGET),10s) \
		--output benchmarks/results/paper.md

bench-wfinstances: setup ## recorded workflow runs, 2 s and 6 s of search each (7 minutes)
	@$(BIN)/python -m benchmarks.wfinstances --budget $(or $(BUDGET),2s 6s) \
		--output benchmarks/results/wfinstances.md

bench-scale: setup ## large runs: time, memory, distance to the bound (2 minutes)
	@$(BIN)/python -m benchmarks.scale --budget $(or $(BUDGET),2s) --output benchmarks/results/scale.md

# Of these the budgets are CPU time of one thread, or schedules; BUDGET=5000schedules or 2cpu, SEEDS=0-2.
bench-suite: setup ## the paper's runs on seven clusters, 5 s of CPU each (25 minutes)
	@$(BIN)/python -m benchmarks.suite --budget $(or $(BUDGET),5cpu) --seeds $(or $(SEEDS),0-2) \
		--output benchmarks/results/suite.md

bench-many-runs: setup ## 100 runs planned together, the last one within limits, 2 s of CPU each (20 minutes)
	@$(BIN)/python -m benchmarks.many_runs --budget $(or $(BUDGET),2cpu) --seeds $(or $(SEEDS),0) \
		--output benchmarks/results/many_runs.md

bench-exact: setup ## 200 small cases beside their proven optima, 2 s of CPU each (7 minutes)
	@$(BIN)/python -m benchmarks.exact --budget $(or $(BUDGET),2cpu) --seeds $(or $(SEEDS),0) \
		--output benchmarks/results/exact.md

bench-j30: setup ## 480 projects of PSPLIB beside their proven optima, 1,000 to 50,000 schedules (7 minutes)
	@$(BIN)/python -m benchmarks.j30 --budget $(or $(BUDGET),1000schedules 5000schedules 50000schedules) \
		--seeds $(or $(SEEDS),0-2) --output benchmarks/results/j30.md

# Searches are kept in .tune.jsonl: interrupted, it goes on where it was.
bench-tune: setup ## how the constants of the search are chosen, on generated instances alone (25 minutes)
	@$(BIN)/python -m benchmarks.tune --workers $(WORKERS) --log .tune.jsonl \
		$(if $(BUDGET),--budget $(BUDGET)) $(if $(SEEDS),--seeds $(SEEDS)) --output benchmarks/results/tune.md

bench-what-if: setup ## what-if: how long the best single changes take, beside a search of every change (25 minutes)
	@$(BIN)/python -m benchmarks.what_if --budget $(or $(BUDGET),2s) --output benchmarks/results/what_if.md

bench-demand: setup ## what whole runs need at once: peaks of plans beside coarser measures (10 seconds)
	@$(BIN)/python -m benchmarks.demand --output benchmarks/results/demand.md

bench-queue: setup ## a day of runs, started at once and by queues of whole runs: 20 days each, and 3 of three namespaces (15 minutes)
	@$(BIN)/python -m benchmarks.queue --output benchmarks/results/queue.md
	@$(BIN)/python -m benchmarks.queue --namespaces --output benchmarks/results/queue_namespaces.md

bench-learning: setup ## run times learned from the runs before, beside simpler rules (6 minutes)
	@$(BIN)/python -m benchmarks.learning --output benchmarks/results/learning.md

bench-rolling: setup ## steps that do not take as long as planned, by four rules of gates (15 minutes)
	@$(BIN)/python -m benchmarks.rolling --cases '$(or $(CASES),made-up*noise 0.6)' --seeds $(or $(SEEDS),1000-1003) \
		$(if $(BUDGET),--budget $(BUDGET)) --output benchmarks/results/rolling.md

bench-speed: setup ## how fast the search is (half a minute; BASE=CHECKOUT: beside that checkout, 6 minutes)
	@$(BIN)/python -m benchmarks.speed $(if $(BASE),--base '$(BASE)')

bench-scheduler: setup ## compare recorded decisions of a real kube-scheduler with the model
	@$(BIN)/python -m benchmarks.scheduler

# Not in `bench`: it needs Go, and a machine on which nothing else is at work.
bench-cluster: setup ## default scheduler, extender and gates on real control planes; a large cluster; many runs that wait (40 minutes)
	@$(BIN)/python -m tests.controller.cluster_bench.actuators --seeds $(or $(SEEDS),5) \
		--output benchmarks/results/cluster.md $(BENCH_ARGS)
	@$(BIN)/python -m tests.controller.cluster_bench.scale --output benchmarks/results/cluster_scale.md
	@$(BIN)/python -m tests.controller.cluster_bench.queue_scale --output benchmarks/results/queue_scale.md

bench-under-attack: setup ## waits for plans while a tenant attacks, on a real control plane (6 minutes)
	@$(BIN)/python -m benchmarks.under_attack --output benchmarks/results/under_attack.md

# Always against the public index, so that the file works everywhere and names no other host.
lock: ## update uv.lock (UPGRADE=1: to the newest versions)
	@env -u UV_INDEX -u UV_EXTRA_INDEX_URL -u UV_INDEX_URL -u UV_FIND_LINKS \
		UV_DEFAULT_INDEX=$(PUBLIC_INDEX) scripts/bootstrap.sh uv lock $(if $(UPGRADE),--upgrade)

build: ## build the four distributions into dist/
	@scripts/bootstrap.sh uv build --all-packages --out-dir dist

clean: ## remove what the other targets made
	@rm -rf .venv .uv-venv dist .coverage .tune.jsonl .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
