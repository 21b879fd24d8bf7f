#!/usr/bin/env bash
# The quickest tests with the oldest versions that pyproject.toml allows (tools/oldest.txt); `make test-oldest` runs all of them.
#   tools/oldest.sh [PYTHON [TESTS...]]     default: the Python of .venv, else python3; formats, kernels, likelihood, trees, files
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
python="${1:-$([ -x "$root/.venv/bin/python" ] && echo "$root/.venv/bin/python" || echo python3)}"
shift || true
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
cd "$root"

"$python" -m venv "$work/oldest"
"$work/oldest/bin/pip" install --quiet --disable-pip-version-check --constraint tools/oldest.txt ".[test]"
"$work/oldest/bin/vaiphy" --version
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(
  tests/formats tests/interop tests/kernels/test_announce.py tests/kernels/test_logsum.py tests/kernels/test_pruning.py
  tests/test_alignment.py tests/test_likelihood.py tests/summary/test_posterior.py tests/trees
  tests/cli/test_commands.py tests/cli/test_figure.py
)
# Old releases use what newer ones of the libraries beneath them have deprecated; that is not for us to mend.
NUMBA_CACHE_DIR="$work/cache" "$work/oldest/bin/python" -m pytest -m "not slow" -q -W ignore::DeprecationWarning "${tests[@]}"
