# One word per task, the same on a laptop and in CI. Each task sets up what it needs, in .venv; only Python 3.11+ and make must be there.
# Variables such as HOLDFAST_REQUIRE reach the tests from the environment or from the command line (make test HOLDFAST_REQUIRE=all).

PYTHON ?= python3
GROUP ?= all

# Relative, so that a project folder with spaces in its path works.
VENV := .venv
RUN := $(VENV)/bin/python
PIP_INSTALL := $(RUN) -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Settings of the user's own Python must not leak into the environment we build and test.
unexport PYTHONPATH PYTHONHOME
export PYTHONNOUSERSITE := 1
export PIP_USER := 0

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast check bench clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready ## Create .venv with pinned packages and compile the fast code once

demo: $(VENV)/.ready ## Show what Holdfast does, in seconds
	@$(VENV)/bin/holdfast demo

# Two workers at most: the statistical tests are heavy on memory bandwidth, and more workers gain little.
test: $(VENV)/.ready ## Run all tests
	@$(RUN) -m pytest -n $$($(RUN) -c 'import os; print(min(2, os.cpu_count() or 1))')

test-fast: $(VENV)/.ready ## Run all tests except the slow group
	@$(RUN) -m pytest -n $$($(RUN) -c 'import os; print(min(2, os.cpu_count() or 1))') -m "not slow"

check: $(VENV)/.ready ## Check style, types and import direction
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) tools/check_imports.py

bench: $(VENV)/.ready-bench ## Run the benchmarks; GROUP=name for one group
	@$(RUN) -m benchmarks $(GROUP)

clean: ## Remove .venv, caches and build output
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis benchmarks/tmp
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A candidate counts only if it runs, is new enough and can make environments: some systems have commands named python3.x that merely
# print an error, and some ship Python without ensurepip.
$(VENV)/.ready: pyproject.toml constraints.txt
	@if ! $(RUN) -m pip --version >/dev/null 2>&1; then \
	    for candidate in "$(PYTHON)" python3.13 python3.12 python3.11; do \
	        if "$$candidate" -c 'import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	            found=$$candidate; break; \
	        fi; \
	    done; \
	    if [ -z "$${found:-}" ]; then \
	        echo "Holdfast needs Python 3.11 or newer with its venv module (Debian and Ubuntu: package python3-venv)."; \
	        echo "Tried $(PYTHON), python3.13, python3.12 and python3.11. Install one of them, or name yours: make PYTHON=path/to/python3"; \
	        exit 1; \
	    fi; \
	    echo "Creating $(VENV) with $$("$$found" --version)"; \
	    "$$found" -m venv --clear $(VENV) || exit 1; \
	fi
	@echo "Installing holdfast and the packages pinned in constraints.txt into $(VENV) (the first time takes a few minutes)"
	@$(PIP_INSTALL) --editable ".[dev]"
	@echo "Compiling the fast code once"
	@$(RUN) -m holdfast.warm
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready
	@echo "Installing the libraries that the benchmarks compare with into $(VENV)"
	@$(PIP_INSTALL) --editable ".[bench]"
	@touch $@
