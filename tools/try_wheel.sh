#!/usr/bin/env bash
# Builds sdist and wheel, installs one of them into an empty environment and runs the quickstart of the docs there.
#   tools/try_wheel.sh [PYTHON [wheel|sdist]]      the Python of the empty environment; default: the one of .venv, else python3
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${1:-$([ -x "$root/.venv/bin/python" ] && echo "$root/.venv/bin/python" || echo python3)}"
kind="${2:-wheel}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
began=$SECONDS

"$python" -m venv "$work/builder"
"$work/builder/bin/pip" install --quiet --disable-pip-version-check build
"$work/builder/bin/python" -m build --outdir "$work/dist" "$root" >"$work/build.log" 2>&1 || { tail -30 "$work/build.log" >&2; exit 1; }
ls -l "$work/dist"

"$python" -m venv "$work/empty"
"$work/empty/bin/pip" install --quiet --disable-pip-version-check "$work"/dist/*."$([ "$kind" = sdist ] && echo tar.gz || echo whl)"
"$work/empty/bin/vaiphy" --version
mkdir "$work/try"
"$work/empty/bin/python" "$root/tools/quickstart.py" "$work/empty/bin/vaiphy" "$work/try"
echo "the $kind works in an empty environment ($((SECONDS - began)) s)"
