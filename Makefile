# `make start` is all that a new machine needs; `make help` lists the other targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
WORKERS ?= 3
# CI runs the slow tests too.
SLOW ?=
FAST := $(if $(SLOW),, and not slow)
DURATIONS := --durations=30 --durations-min=5
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
LOCK := .venv/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --upgrade

# Users get the versions that the tests run with.
AS_TESTED := --constraint requirements/dev.txt

# The simulated cloud's packages are installed only if ARGS or ucp.yaml ask for it.
CLOUD := $(if $(findstring --cloud,$(ARGS))$(shell grep -s 'simulated: *true' ucp.yaml),.venv/ready-cloud)

# The commands that ucp suggests start with `ucp`, which must be on PATH.
TELL_PATH := command -v ucp >/dev/null || echo "to add ucp to PATH: source .venv/bin/activate" >&2

# Without a network, pip reports only that it found no matching version.
TELL_NETWORK := { echo "pip failed to install ucp's dependencies; next: check the network and pip's index (python3 -m pip config list), then run make again" >&2; exit 1; }

.PHONY: start stop status install-tools install-cloud test test-kind soak bench check fmt lock lock-releases update-golden schema kinds pictures image wheel clean help

start: .venv/ready $(CLOUD) ## install ucp into .venv, then run `ucp start` (ARGS="--yes" skips all questions)
	@.venv/bin/ucp start $(ARGS) || code=$$?; $(TELL_PATH); exit $${code:-0}

stop: .venv/ready ## stop the topology; its repositories are kept
	@.venv/bin/ucp stop $(ARGS)

status: .venv/ready ## show what runs where
	@.venv/bin/ucp status $(ARGS)

install-tools: .venv/ready ## install the pinned programs into the user's cache
	@.venv/bin/ucp tools install $(ARGS)

install-cloud: .venv/ready-cloud ## install the packages of the simulated cloud

test: .venv/ready-dev ## check the code, then run the tests against the real engines (SLOW=1: the slow ones too)
	@$(MAKE) --no-print-directory check
	@.venv/bin/ucp tools install --source sources
	@.venv/bin/ucp tools install helm argo-rollouts --source sources
	@.venv/bin/python -m pytest -m "not soak and not kind$(FAST)" -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		$(DURATIONS) $(ARGS)

test-kind: .venv/ready-dev ## run the tests with real kind clusters; skipped if Docker can't create any
	@tests/kind_machine.sh .venv/bin/python -m pytest -m "kind and not soak$(FAST)" \
		-n 2 --dist loadfile --no-loadscope-reorder -p no:cacheprovider $(DURATIONS) $(ARGS)

soak: .venv/ready-dev ## run the long test matrices; resumable; writes docs/evidence/
	@.venv/bin/python -m pytest -m soak -p no:cacheprovider $(ARGS)

bench: .venv/ready-dev ## run the benchmarks, compared within one run; writes docs/evidence/
	@.venv/bin/python -m tests.bench $(ARGS)

check: .venv/ready-dev ## run formatter check, linter, type checker and import contracts
	@.venv/bin/ruff format --check src tests
	@.venv/bin/ruff check --no-cache src tests
	@.venv/bin/mypy
	@.venv/bin/lint-imports

fmt: .venv/ready-dev ## format the code
	@.venv/bin/ruff format src tests
	@.venv/bin/ruff check --fix src tests

lock: .venv/ready-dev ## update the locked requirements (with hashes, without index URLs)
	@$(LOCK) --all-extras --group dev -o requirements/dev.txt
	@$(LOCK) $(AS_TESTED) --extra engines --group checkout -o requirements/ucp.txt
	@$(LOCK) $(AS_TESTED) --extra cloud -o requirements/cloud.txt
	@$(LOCK) $(AS_TESTED) --extra forges -o requirements/promote.txt
	@$(LOCK) $(AS_TESTED) --extra served -o src/k8s_ucp/components/pods/image/requirements.txt

lock-releases: .venv/ready-dev ## update the locked hashes of program releases (from their publishers)
	@.venv/bin/python -c 'from k8s_ucp.tools.lock_releases import renew; print(renew())'

update-golden: .venv/ready-dev ## regenerate the golden files; review the diff before committing
	@.venv/bin/python -m pytest tests/golden --update-golden

schema: .venv/ready-dev ## regenerate the JSON Schema of ucp.yaml
	@.venv/bin/python -m k8s_ucp.topology.schema > templates/core/ucp.schema.json.new
	@mv templates/core/ucp.schema.json.new templates/core/ucp.schema.json

kinds: .venv/ready-dev ## regenerate the table of built-in kinds from the pinned API server
	@.venv/bin/python -m tests.built_in_kinds

pictures: .venv/ready-dev ## regenerate the pictures of README.md and docs/ (ARGS="packages flow session": those without chromium and engines)
	@.venv/bin/python -m tests.pictures $(ARGS)

image: .venv/ready ## build the reconciler image (ARGS="--base IMAGE --tag NAME")
	@.venv/bin/python -m k8s_ucp.components.pods.reconciler_image $(ARGS)

wheel: .venv/ready-dev ## build the wheel into dist/
	@.venv/bin/python -m build --wheel --no-isolation

clean: ## remove the virtual environment and build results; topologies are kept
	@rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

# The marker file is created last, so that an interrupted setup is repeated.
.venv/ready: requirements/ucp.txt pyproject.toml | .venv/bin/python
	@echo "setting up .venv (hash-locked requirements)"
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements/ucp.txt || $(TELL_NETWORK)
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/ready-cloud: requirements/cloud.txt .venv/ready
	@echo "installing the packages of the simulated cloud"
	@$(PIP) install --require-hashes -r requirements/cloud.txt || $(TELL_NETWORK)
	@touch $@

.venv/ready-dev: requirements/dev.txt .venv/ready
	@echo "setting up .venv for development"
	@$(PIP) install --require-hashes -r requirements/dev.txt || $(TELL_NETWORK)
	@touch $@

.venv/bin/python:
	@command -v git >/dev/null || { echo "git is missing; next: apt-get install git (or use your package manager)" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing; next: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); k8s-ucp needs 3.11 or newer; next: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) can't create virtual environments; next: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv
