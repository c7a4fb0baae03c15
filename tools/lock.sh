#!/usr/bin/env bash
# Writes requirements/*.txt: exact versions with hashes, one file for Python 3.11 to 3.13. Versions stay as they are unless pyproject.toml
# rules them out; delete a file first to take the newest of everything.
set -euo pipefail
venv=$1
cd "$(dirname "$0")/.."
"$1/bin/python" -m pip install --quiet --disable-pip-version-check "uv==0.13.7"
compile() {
    "$venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate "$@" >/dev/null
}

compile pyproject.toml --extra postgres --output-file requirements/run.txt
compile pyproject.toml requirements/build.in --extra dev --output-file requirements/dev.txt
compile pyproject.toml requirements/build.in --extra dev --extra bench --output-file requirements/bench.txt
