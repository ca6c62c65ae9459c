# `make demo` and `make test` need nothing but bash, make and a Python 3.10 to 3.12 with its venv module.
SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
# The version that the demo and the tests are known to run with.
MINDSPORE := mindspore==2.10.0
# It has a Python of its own: beside MindSpore, `--start auto` would not choose it. Only the build for the CPU
# (0.2 GB): the usual one for Linux brings several GB of CUDA along.
TORCH := torch==2.13.0+cpu
export HCCL_TOOLS_TORCH_PYTHON ?= $(abspath $(VENV))/torch/bin/python
# In a Python of its own, too: Paddle and MindSpore want different versions of NumPy. The build for the CPU (0.2 GB).
PADDLE := paddlepaddle==3.3.1
export HCCL_TOOLS_PADDLE_PYTHON ?= $(abspath $(VENV))/paddle/bin/python
# What the tests of pages need beside Debian's Chromium; Debian's Node.js 18 runs these.
BROWSER_MODULES := puppeteer-core@24.8.2 axe-core@4.10.3
BROWSER := $(VENV)/browser/.installed
TORCHRUN := $(dir $(HCCL_TOOLS_TORCH_PYTHON))torchrun
FLEETRUN := $(dir $(HCCL_TOOLS_PADDLE_PYTHON))fleetrun
# An editable install leaves it to the first start, which PYTHONDONTWRITEBYTECODE keeps from doing it.
COMPILE := $(BIN)/python -m compileall -q hccl_tools
SHELL_SCRIPTS := .ci/run .ci/find-python examples/demo.sh $(wildcard launchers/*.sh launchers/*.sbatch)

# One for each core prefers tests that compute, three more those that wait (tests/suite/dealing.py).
WORKERS := $(shell n=$$(($$(nproc) + 3)); echo $$((n < 10 ? n : 10)))
PYTEST := $(BIN)/python -m pytest
# What needs no bed, no MindSpore, no mpirun and no waiting.
QUICK := not (slow or bed or mpi or mindspore)
# For `make steady`: so often, beside so many busy loops, with these arguments of pytest.
TIMES := 5
LOAD := 2
SELECT := -m bed
# Otherwise each worker would compile all tests again, in every run.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all steady durations fuzz mutants matrix check lint style typecheck docs bench pyz clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo-installed  ## make a table, check it, train on four ranks from it (on the CPU)
	@DEMO_INSTALLED_IN="$$(cat $<)" PATH="$(abspath $(BIN)):$$PATH" examples/demo.sh

test: $(TORCHRUN) $(FLEETRUN) $(BROWSER) $(VENV)/.test-installed  ## run every check and every test
	@$(MAKE) --jobs=2 --output-sync typecheck lint docs $(VENV)/.tests-compiled
	@$(PYTEST) --numprocesses=$(WORKERS) --dist=loadgroup $(PYTEST_ARGS)

test-all:  ## the same with every engine for every fault
	@$(MAKE) test PYTEST_ARGS='--all-starts $(PYTEST_ARGS)'

steady: $(TORCHRUN) $(FLEETRUN) $(BROWSER) $(VENV)/.tests-compiled  ## run SELECT TIMES times beside LOAD busy loops, list what failed
	@$(BIN)/python -m tests.suite.steady --times $(TIMES) --load $(LOAD) -- \
	  --numprocesses=$(WORKERS) --dist=loadgroup $(SELECT)

durations: $(TORCHRUN) $(FLEETRUN) $(BROWSER) $(VENV)/.tests-compiled  ## measure how long the tests take, by which they are dealt
	@$(PYTEST) --numprocesses=$(WORKERS) --dist=loadgroup --write-durations

# All targets of tests/support/fuzz_targets.py share the time, or those that TARGET names.
MINUTES := 10
TARGET :=
fuzz: $(VENV)/.test-installed  ## search MINUTES for inputs that break a reader: all of them, or TARGET
	@$(BIN)/python -c 'import atheris' 2>/dev/null || $(BIN)/python -m pip install --quiet 'atheris>=3.0' || true
	@$(BIN)/python -m benchmarks.fuzz $(MINUTES) $(TARGET)

# Each mutant is tried against the quick tests that reach its line; SEED chooses the mutants.
MUTANTS := 400
SEED := 1
mutants: $(VENV)/.test-installed  ## change the package in MUTANTS places, one at a time, and see whether a test fails
	@$(BIN)/python -c 'import pytest_cov' 2>/dev/null || $(BIN)/python -m pip install --quiet 'pytest-cov>=6.0'
	@$(PYTEST) --quiet --numprocesses=auto --dist=worksteal --hypothesis-profile=check -m '$(QUICK)' --ignore=tests/beds \
	  --ignore-glob='*_on_*_hosts.py' --cov=hccl_tools --cov-context=test --cov-report=
	@$(BIN)/python -m tests.suite.mutation --mutants $(MUTANTS) --seed $(SEED)

matrix: $(VENV)/.test-installed  ## try the wheel and the archive on every Python here, with lowest and newest dependencies
	@$(BIN)/python -m tests.suite.matrix

check: $(VENV)/.test-installed  ## run lint, typecheck and the quick tests (75 to 90 s on two cores, 95 s of processor time)
	@$(MAKE) --jobs=2 --output-sync style typecheck
	@$(PYTEST) --quiet --numprocesses=auto --maxprocesses=4 --dist=worksteal \
	  --hypothesis-profile=check -m '$(QUICK)' --ignore=tests/beds --ignore-glob='*_on_*_hosts.py' $(PYTEST_ARGS)

# Rules of ruff (S) stand for bandit's in `make check`: they take a hundredth of its time.
lint: style  ## check the style of Python and shell files, and the security of the package
	@$(BIN)/bandit --quiet --recursive --severity-level medium hccl_tools

style: $(VENV)/.test-installed
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check --quiet
	@if command -v shellcheck >/dev/null; then shellcheck $(SHELL_SCRIPTS); \
	else echo 'shellcheck is not installed: the shell scripts are not checked'; fi

typecheck: $(VENV)/.test-installed  ## check the types
	@$(BIN)/mypy

# Warnings, as of a dead link, are errors; not with `--quiet`, which does not count them. No network is used.
docs: $(VENV)/.test-installed  ## build the pages of docs/en and docs/zh as a site: dist/docs/index.html (10 s)
	@log="$$(mktemp)"; trap 'rm -f "$$log"' EXIT; NO_MKDOCS_2_WARNING=1 PYTHONPATH=. \
	$(BIN)/python -m mkdocs build --strict --config-file website/mkdocs.yml >"$$log" 2>&1 || { cat "$$log"; exit 1; }

bench: $(VENV)/.test-installed $(TORCHRUN)  ## take the figures of the README
	@over=0; for figure in gen validate merge pictures launch; do \
	  PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python -m "benchmarks.$$figure" || over=1; done; exit $$over

# For another system: PYZ_FLAGS='--platform manylinux_2_28_aarch64 --python-version 3.11 --only-binary=:all:'.
PYZ_FLAGS :=
PYZ = dist/hccl-tools-$(shell $(BIN)/python -c 'import sys, sysconfig; print("py%d%d" % sys.version_info[:2], sysconfig.get_platform(), sep="-")').pyz
pyz: $(BIN)/python  ## build dist/hccl-tools-PYTHON-SYSTEM.pyz: one file for hosts without pip
	@command -v $(BIN)/shiv >/dev/null || $(BIN)/python -m pip install --quiet shiv
	@mkdir -p dist && $(BIN)/shiv --quiet --compressed --console-script hccl-tools \
	  --python '/usr/bin/env python3' --output-file '$(PYZ)' $(PYZ_FLAGS) '.[fast,yaml]' && echo 'built $(PYZ)'

clean:  ## remove what the other targets made
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@python="$$(.ci/find-python)" && echo "making $(VENV) with $$python" && "$$python" -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml | $(BIN)/python
	@echo 'installing hccl-tools, $(MINDSPORE) and scikit-learn into $(VENV) (a minute or two)'
	@SECONDS=0; $(BIN)/python -m pip install --quiet --editable '.[fast,examples]' '$(MINDSPORE)'; \
	$(COMPILE); echo $$SECONDS > $@

$(VENV)/.test-installed: pyproject.toml | $(BIN)/python
	@echo 'installing hccl-tools, $(MINDSPORE) and the test tools into $(VENV) (a minute or two)'
	@$(BIN)/python -m pip install --quiet --editable '.[dev,docs,fast,mpi,plot,examples]' '$(MINDSPORE)'
	@$(COMPILE); touch $@

# All tests are compiled once here, and not by each worker.
$(VENV)/.tests-compiled: $(shell find tests -name '*.py') | $(VENV)/.test-installed
	@$(PYTEST) --collect-only --quiet >/dev/null && touch $@

# Where pip is offered no such build all else goes on, and the tests that want torch say that they are left out.
$(abspath $(VENV))/torch/bin/torchrun: | $(BIN)/python
	@echo 'installing $(TORCH) into $(VENV)/torch (half a minute)'
	@$(BIN)/python -m venv $(VENV)/torch
	@$(VENV)/torch/bin/python -m pip install --quiet '$(TORCH)' numpy || { rm -rf $(VENV)/torch; \
	  echo "no $(TORCH): what needs it is left out (PIP_EXTRA_INDEX_URL can name PyTorch's index of such builds)"; }

$(abspath $(VENV))/paddle/bin/fleetrun: | $(BIN)/python
	@echo 'installing $(PADDLE) into $(VENV)/paddle (a minute)'
	@$(BIN)/python -m venv $(VENV)/paddle
	@$(VENV)/paddle/bin/python -m pip install --quiet '$(PADDLE)' || { rm -rf $(VENV)/paddle; \
	  echo "no $(PADDLE): what needs it is left out"; }

# Without npm the tests in a browser are left out.
$(BROWSER): Makefile | $(BIN)/python
	@if command -v npm >/dev/null; then echo 'installing $(BROWSER_MODULES) into $(VENV)/browser'; mkdir -p $(dir $@); \
	npm install --prefix $(dir $@) --no-save --no-audit --no-fund --ignore-scripts --loglevel=error $(BROWSER_MODULES) \
	</dev/null && touch $@ || echo 'npm cannot install them: the tests in a browser are left out'; \
	else echo 'npm is not installed: the tests in a browser are left out'; fi
