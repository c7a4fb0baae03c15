#!/usr/bin/env bash
# Runs the tests with the oldest versions that pyproject.toml allows, in an environment of its own. Warnings of old packages are not ours.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-oldest
"$1/bin/python" -m pip install --quiet --disable-pip-version-check "uv==0.13.7"
"$1/bin/python" -m venv --clear "$venv"
uv="$1/bin/uv pip"
$uv install --quiet --python "$venv/bin/python" --resolution lowest-direct --requirement pyproject.toml --extra test --requirement requirements/build.in
$uv install --quiet --python "$venv/bin/python" --no-deps --no-build-isolation --editable .
"$venv/bin/python" -m pytest -n 2 -m "not long" -W default
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
