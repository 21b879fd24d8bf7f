# Everything sets itself up: the only things needed beforehand are Python 3.11+ and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-all test-oldest fuzz kills axe lint docs bench bench-quick clean

demo: $(STAMP)
	$(BIN)/vaiphy run DS1 --model JC --prefix demo/DS1 --seed 1 --redo

test: $(STAMP)
	$(BIN)/python -m pytest -m "not slow"

test-all: $(STAMP)
	$(BIN)/python -m pytest

# With the oldest versions of everything that pyproject.toml allows, in an environment of its own.
test-oldest:
	@tools/oldest.sh $(PYTHON) tests

# Minutes each: damaged and random inputs at every reader; runs killed at random moments, which must end with the same result.
fuzz: $(STAMP)
	$(BIN)/python tools/fuzz.py --seconds $(or $(SECONDS),180)

kills: $(STAMP)
	$(BIN)/python tools/kills.py --kills $(or $(KILLS),100)

# The accessibility of the page, by axe-core (npm), in Chromium.
axe: $(STAMP)
	npm install --silent --no-save --prefix build/axe axe-core
	AXE=build/axe/node_modules/axe-core/axe.min.js $(BIN)/python -m pytest tests/output/test_page.py -k axe

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(STAMP)
	$(BIN)/sphinx-build -W -b html docs docs/_build/html

bench: $(STAMP)
	@tools/peers.sh mrbayes iqtree gcc libc6-dev
	$(BIN)/python -m benchmarks

bench-quick: $(STAMP)
	@tools/peers.sh mrbayes iqtree gcc libc6-dev
	$(BIN)/python -m benchmarks --quick

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "VaiPhy needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,lint,docs]"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[interop]" \
	  || echo "not all libraries that results are converted to could be installed; the tests of the others are skipped" >&2
	@touch $(STAMP)

clean:
	rm -rf $(VENV) demo docs/_build build dist
