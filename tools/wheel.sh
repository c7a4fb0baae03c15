#!/usr/bin/env bash
# Builds the wheel into dist/. Times in the archive are those of the commit, so two builds of one commit have one hash.
set -euo pipefail
cd "$(dirname "$0")/.."
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)
export SOURCE_DATE_EPOCH
rm -rf build dist src/*.egg-info/SOURCES.txt
"$1" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
sha256sum dist/*.whl
