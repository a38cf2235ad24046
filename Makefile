# Every target does its own set-up: a fresh machine needs Python 3.11, make and gcc.
PYTHON ?= python3.11
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
OUT    ?= runs/demo
# Two test workers with one thread each beat one worker with two.
WORKERS ?= 2

.PHONY: setup demo test lint bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	command -v $(PYTHON) >/dev/null || { echo "python3.11 is needed: set PYTHON=/path/to/python"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: setup
	$(BIN)/python examples/demo.py --out $(OUT)

test: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS)

lint: setup
	$(BIN)/ruff check src tests benchmarks examples
	$(BIN)/ruff format --check src tests benchmarks examples
	$(BIN)/mypy

bench: setup
	$(BIN)/discreet bench smoke --out runs/smoke
	$(BIN)/python benchmarks/propagation.py
	$(BIN)/python benchmarks/gap_fit.py

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
