# One word per task, the same on a laptop and in CI. Each task sets up what it needs, in .venv; only Python 3.11+ and make must be there.
# Variables such as HOLDFAST_REQUIRE reach the tests from the environment or from the command line (make test HOLDFAST_REQUIRE=all).

PYTHON ?= python3
GROUP ?= all

# Relative, so that a project folder with spaces in its path works.
VENV := .venv
RUN := $(VENV)/bin/python
# Python compiles what is imported, when it is imported; compiling all packages ahead takes half of the time of the installation.
PIP := -m pip install --quiet --disable-pip-version-check --no-compile
# Dependencies by hash, then the project itself without dependencies: nothing that was not locked is installed.
PROJECT := --no-deps --no-build-isolation

# Settings of the user's own Python must not leak into the environment we build and test: not its packages, and not the wish to keep no
# compiled files, with which each of the many processes that tests start would compile all packages anew, for seconds.
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE
export PYTHONNOUSERSITE := 1
export PIP_USER := 0

# Two workers at most: the statistical tests are heavy on memory bandwidth, and more workers gain little.
PYTEST = $(RUN) -m pytest -n $$($(RUN) -c 'import os; print(min(2, os.cpu_count() or 1))')

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-long test-faults test-all test-oldest snapshots check coverage bench lock wheel test-wheel sbom docker clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.ready ## Create .venv with the locked packages

demo: $(VENV)/.ready ## Show what Holdfast does, in seconds
	@$(VENV)/bin/holdfast demo

test: $(VENV)/.ready ## Run the tests, in about six minutes: enumeration, properties, one fit per sampler, a crash, a database, a browser
	@$(PYTEST) -m "not long"

test-fast: $(VENV)/.ready ## Run the quick tests, in about a minute
	@$(PYTEST) -m "not long and not medium"

test-long: $(VENV)/.ready ## Run what `test` leaves out: long statistical tests, killed processes, memory, all examples of properties
	@$(PYTEST) -m "long or properties"

test-faults: $(VENV)/.ready ## Run the fault drivers exhaustively: power loss, memory, rollback, read-only installation
	@$(RUN) -m tests.faults

test-all: test test-long test-faults ## Run every test, and all faults

test-oldest: $(VENV)/.ready ## Run the tests with the oldest versions that pyproject.toml allows
	@tools/oldest.sh $(VENV)

snapshots: $(VENV)/.ready ## Write the texts in tests/snapshots anew; look at the difference before you commit it
	@HOLDFAST_SNAPSHOTS=write $(RUN) -m pytest -q -p no:xdist

check: $(VENV)/.ready ## Check style, types and import direction
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) tools/check_imports.py

coverage: $(VENV)/.ready ## Measure branch coverage of the tests
	@$(RUN) -m coverage erase
	@$(RUN) -m coverage run -m pytest -q -m "not long"
	@$(RUN) -m coverage report

bench: $(VENV)/.ready-bench ## Run the benchmarks; GROUP=name for one group
	@$(RUN) -m benchmarks $(GROUP)

lock: $(VENV)/.ready ## Write requirements/*.txt anew: versions and hashes for Python 3.11 to 3.13
	@tools/lock.sh $(VENV)

wheel: $(VENV)/.ready ## Build the wheel into dist/; two builds of one commit are equal
	@tools/wheel.sh $(RUN)

test-wheel: $(VENV)/.ready ## Install the wheel into an empty read-only environment and run it as user nobody (needs root)
	@tools/as_nobody.sh $(VENV)

sbom: $(VENV)/.ready ## List what a deployment installs, with versions and licences, as sbom.json
	@$(RUN) tools/sbom.py > sbom.json && echo "sbom.json"

docker: ## Build the image and run the demo in it as an ordinary user
	docker build --tag holdfast . && docker run --rm holdfast demo

clean: ## Remove .venv, caches and build output
	rm -rf $(VENV) .venv-oldest build dist sbom.json src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage benchmarks/tmp
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A candidate counts only if it runs, is new enough and can make environments: some systems have commands named python3.x that merely
# print an error, and some ship Python without ensurepip.
$(VENV)/.ready: pyproject.toml requirements/dev.txt
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
	@echo "Installing holdfast and its locked packages into $(VENV) (the first time takes a few minutes)"
	@$(RUN) $(PIP) --require-hashes --requirement requirements/dev.txt
	@$(RUN) $(PIP) $(PROJECT) --editable .
	@touch $@

$(VENV)/.ready-bench: $(VENV)/.ready requirements/bench.txt
	@echo "Installing the libraries that the benchmarks compare with into $(VENV)"
	@$(RUN) $(PIP) --require-hashes --requirement requirements/bench.txt
	@touch $@
