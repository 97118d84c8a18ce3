# `make start` on a fresh machine does everything; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
WORKERS ?= 3
DURATIONS := --durations=30 --durations-min=5
PIP := .venv/bin/python -m pip --disable-pip-version-check --quiet
LOCK := .venv/bin/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-header --no-annotate --quiet --upgrade

# What simulates a cloud is installed where one is asked for.
CLOUD := $(if $(findstring --cloud,$(ARGS))$(shell grep -s 'simulated: *true' ucp.yaml),.venv/ready-cloud)

# What ucp proposes to type next begins with its name.
TELL_PATH := command -v ucp >/dev/null || echo "to type ucp without a path: source .venv/bin/activate" >&2

# pip says only that it has found no version.
TELL_NETWORK := { echo "pip could not install what ucp needs; next: check the network and pip's index (python3 -m pip config list), then run make again" >&2; exit 1; }

.PHONY: start stop status install-tools install-cloud test test-kind soak bench check fmt lock lock-releases update-golden schema kinds pictures image wheel clean help

start: .venv/ready $(CLOUD) ## set up what is missing, then run `ucp start` (ARGS="--yes" asks nothing)
	@.venv/bin/ucp start $(ARGS) || code=$$?; $(TELL_PATH); exit $${code:-0}

stop: .venv/ready ## stop everything that start started; repositories stay
	@.venv/bin/ucp stop $(ARGS)

status: .venv/ready ## what runs where
	@.venv/bin/ucp status $(ARGS)

install-tools: .venv/ready ## build the pinned programs into the user's cache
	@.venv/bin/ucp tools install $(ARGS)

install-cloud: .venv/ready-cloud ## install what simulates a cloud on this machine

test: .venv/ready-dev ## install what is missing, check the code, run every test with the real engines
	@$(MAKE) --no-print-directory check
	@.venv/bin/ucp tools install --source sources
	@.venv/bin/ucp tools install helm argo-rollouts --source sources
	@.venv/bin/python -m pytest -m "not soak and not kind" -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
		$(DURATIONS) $(ARGS)

test-kind: .venv/ready-dev ## the tests with real kind clusters; where none can be made it says so
	@tests/kind_machine.sh .venv/bin/python -m pytest -m "kind and not soak" \
		-n 2 --dist loadfile --no-loadscope-reorder -p no:cacheprovider $(DURATIONS) $(ARGS)

soak: .venv/ready-dev ## the full matrices and counts; resumable; writes docs/evidence/
	@.venv/bin/python -m pytest -m soak -p no:cacheprovider $(ARGS)

bench: .venv/ready-dev ## ratios, side by side in one run; writes docs/evidence/
	@.venv/bin/python -m tests.bench $(ARGS)

check: .venv/ready-dev ## linter, types, import directions
	@.venv/bin/ruff format --check src tests
	@.venv/bin/ruff check --no-cache src tests
	@.venv/bin/mypy
	@.venv/bin/lint-imports

fmt: .venv/ready-dev ## format the code
	@.venv/bin/ruff format src tests
	@.venv/bin/ruff check --fix src tests

lock: .venv/ready-dev ## renew the locked requirements (hashes, no index addresses)
	@$(LOCK) --extra engines --group checkout -o requirements/ucp.txt
	@$(LOCK) --all-extras --group dev -o requirements/dev.txt
	@$(LOCK) --extra cloud -o requirements/cloud.txt
	@$(LOCK) --extra forges -o requirements/promote.txt
	@$(LOCK) --extra served -o src/k8s_ucp/components/pods/image/requirements.txt

lock-releases: .venv/ready-dev ## renew the locked hashes of the publishers' releases (asks them)
	@.venv/bin/python -c 'from k8s_ucp.tools.lock_releases import renew; print(renew())'

update-golden: .venv/ready-dev ## write the golden trees anew; look at the diff before committing
	@.venv/bin/python -m pytest tests/golden --update-golden

schema: .venv/ready-dev ## write the JSON Schema of ucp.yaml anew, for editors
	@.venv/bin/python -m k8s_ucp.topology.schema > templates/core/ucp.schema.json.new
	@mv templates/core/ucp.schema.json.new templates/core/ucp.schema.json

kinds: .venv/ready-dev ## write the table of Kubernetes' own kinds anew, from the pinned API server
	@.venv/bin/python -m tests.built_in_kinds

pictures: .venv/ready-dev ## make what README.md and docs/ show anew (ARGS="packages flow session": without chromium and engines)
	@.venv/bin/python -m tests.pictures $(ARGS)

image: .venv/ready ## build the reconciler's image (ARGS="--base IMAGE --tag NAME")
	@.venv/bin/python -m k8s_ucp.components.pods.reconciler_image $(ARGS)

wheel: .venv/ready-dev ## build the wheel into dist/
	@.venv/bin/python -m build --wheel --no-isolation

clean: ## remove the virtual environment and build results (no state of any topology)
	@rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' Makefile

# The marker comes last: an interrupted set-up is done again.
.venv/ready: requirements/ucp.txt pyproject.toml | .venv/bin/python
	@echo "setting up .venv (hash-locked requirements)"
	@$(PIP) --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	@$(PIP) install --require-hashes -r requirements/ucp.txt || $(TELL_NETWORK)
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

.venv/ready-cloud: requirements/cloud.txt .venv/ready
	@echo "installing what simulates a cloud"
	@$(PIP) install --require-hashes -r requirements/cloud.txt || $(TELL_NETWORK)
	@touch $@

.venv/ready-dev: requirements/dev.txt .venv/ready
	@echo "setting up .venv for development"
	@$(PIP) install --require-hashes -r requirements/dev.txt || $(TELL_NETWORK)
	@touch $@

.venv/bin/python:
	@command -v git >/dev/null || { echo "git is missing; next: apt-get install git (or your system's way)" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { echo "$(PYTHON) is missing; next: apt-get install python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); k8s-ucp needs 3.11 or newer; next: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) can't make virtual environments; next: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv .venv
