# `make demo` and `make test` need Python >= 3.11 and make: the environment is made in .venv on first use.
PYTHON ?= python3

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Stamps: the interpreter the environment was made with, and what is installed in it.
# Another PYTHON makes a new environment; a changed pyproject.toml installs again.
MADE := $(VENV)/.made-with-$(subst /,_,$(PYTHON))
RUN  := $(VENV)/.installed-run
DEV  := $(VENV)/.installed-dev

.PHONY: help demo test lint bench clean
.NOTPARALLEL:

help:
	@echo "make demo    train a small GPT under the profiler; table, trace, stacks and memory timeline in build/demo"
	@echo "make test    run the tests (PYTEST_ARGS='-k name' to choose)"
	@echo "make lint    ruff, mypy, import-linter"
	@echo "make bench   time dispatch and profiler (TORCH_PYTHON=/path/to/python adds ratios to that torch)"
	@echo "make clean   remove .venv, build and caches"
	@echo "PYTHON=python3.12 chooses the interpreter"

demo: $(RUN)
	$(BIN)/python examples/train_gpt.py --out build/demo

test: $(DEV)
	$(BIN)/python -m pytest -q -n 2 $(PYTEST_ARGS)

lint: $(DEV)
	$(BIN)/ruff check --output-format concise .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(RUN)
	TORCH_PYTHON='$(TORCH_PYTHON)' $(BIN)/python benchmarks/run.py $(BENCH_ARGS)

clean:
	rm -rf $(VENV) build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis src/*.egg-info
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and f"Python >= 3.11 is needed; $(PYTHON) is {sys.version.split()[0]}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUN): pyproject.toml $(MADE)
	$(PIP) install --editable .
	@touch $@

$(DEV): pyproject.toml $(MADE)
	$(PIP) install --editable '.[dev]'
	@touch $(RUN) $@
