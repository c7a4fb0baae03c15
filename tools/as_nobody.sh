#!/usr/bin/env bash
# Installs the wheel and its locked packages into an empty environment, and runs them as a user who has no home, may not write there, and
# is not the one who installed: `nobody`. Needs root (to become nobody) and a Python 3.11+ outside root's home: as_nobody.sh venv [python].
set -euo pipefail
cd "$(dirname "$0")/.."
python=${2:-/usr/bin/python3}
if [ "$(id -u)" -ne 0 ]; then echo "as_nobody.sh: skipped, since only root can become nobody."; exit 0; fi
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env -i PATH="$place/env/bin:/usr/bin:/bin" HOME=/nonexistent "$@"; }
place=$(mktemp -d /tmp/holdfast-nobody-XXXXXX)
trap 'rm -rf "$place"' EXIT
chmod 755 "$place"
if ! as_nobody "$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))'; then
    echo "as_nobody.sh: nobody cannot run $python, or it is older than 3.11. Name another one."; exit 1
fi

tools/wheel.sh "$1/bin/python"
"$python" -m venv "$place/env"
pip=("$place/env/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile)
"${pip[@]}" --require-hashes --requirement requirements/run.txt
"${pip[@]}" --no-deps dist/*.whl
chmod -R a+rX,a-w "$place/env"

mkdir "$place/work"
chown 65534:65534 "$place/work"
cd "$place/work"
if as_nobody touch "$place/env/new" 2>/dev/null; then echo "as_nobody.sh: the installation can be written."; exit 1; fi
for command in "demo -o demo" "plan demo/run.toml" "release demo/run.toml -o out --no-ledger" "verify out"; do
    echo "\$ holdfast $command"
    # shellcheck disable=SC2086
    as_nobody holdfast $command > said 2>> told || { cat said told; echo "as_nobody.sh: failed."; exit 1; }
    tail -n 2 said
done
cat told
grep -q "in every process" told || { echo "as_nobody.sh: it was not announced that loops are compiled in memory."; exit 1; }
echo "The wheel works for a user without a home and with a read-only installation."
