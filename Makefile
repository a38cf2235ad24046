# Every target does its own set-up: a fresh machine needs Python 3.11, 3.12 or 3.13, make and gcc.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= runs/demo
# Two test workers with one thread each beat one worker with two.
WORKERS ?= 2
# Each takes its own half of the files in order, so that tests that share a fit run in one of them; who is done first
# helps the other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# Each contract at one basis per level, and the replay audit, which takes longest, where it is quickest.
CHEAP  := not (promised or thinned or directed or replace or replay: or the_only_label_may_go) or (replay: and (edge] or local]))
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: setup demo check test slow fuzz lint style bench docs clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python \
	  || $(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
	  || { echo "Discreet needs Python 3.11, 3.12 or 3.13: name one with PYTHON=, for example make setup PYTHON=python3.12"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(PIP) -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/python examples/payments/run.py --out $(OUT)

# Before every commit, 90 seconds at most: lint, types, imports, documents, and each contract where it is cheap. Types,
# half a minute on a fresh clone, are checked meanwhile.
check: style
	$(BIN)/mypy & $(PYTEST) --maxfail=3 tests/contracts tests/test_imports.py tests/test_docs.py -m "not slow" -k "$(CHEAP)" && wait $$!

# Before every merge: everything that is not marked slow.
test: style
	$(BIN)/mypy & $(PYTEST) -m "not slow" && wait $$!

# Once a week: what is marked slow, and what tries harder here (tests/effort.py): more pairs, runs and larger graphs.
slow: setup
	DISCREET_EFFORT=high $(PYTEST) -m "slow or effort"

# Hostile inputs with fresh seeds, which are printed where a case does not end well: make fuzz N=10000
# Threads wait without work: cases are judged by processor time, and those of several processes share the cores.
N ?= 2000
fuzz: setup
	OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m tests.fuzz $(N) --jobs $(WORKERS)

lint: style
	$(BIN)/mypy

style: setup
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples

bench: setup
	$(BIN)/discreet bench smoke --out runs/smoke
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/gap_fit.py

# The site, into build/site, without the network. Warnings (a dead link, a page that nothing leads to) are errors.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
