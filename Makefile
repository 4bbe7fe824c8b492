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
SITE := $(VENV)/.installed-docs

# The interpreters of `make test-all`.
VERSIONS := 3.11 3.12 3.13 3.14

# Of the longest part of `make soak`; each fuzzing run takes two thirds of it.
SOAK_MINUTES ?= 30

# Of `make fuzz-programs`.
PROGRAMS ?= 100000
SEED ?= 1

# Other projects' programs bring a hundred packages along: they have an environment of their own.
INTEROP := build/interop

# So do the libraries that use torch.
ECOSYSTEM := build/ecosystem

# And Dask, Ray, an S3 server and HolisticTraceAnalysis, for `make ranks`.
RANKS := build/ranks

# What `make quick` runs: every op by its declaration (values, gradients, shapes, `out=`), autograd, dispatch, modules, optimizers, and
# how a profile is recorded, kept and read. Left out is what takes minutes: second derivatives, recordings of torch, and what starts
# processes, browsers or the Ascend simulator (command line, files, reports, imports).
QUICK := $(addprefix tests/mindtorch_v2/,autograd core dispatch func nn optim ops/test_registry.py \
	$(addprefix profiler/,assembly recording retention store views)) \
	--deselect tests/mindtorch_v2/ops/test_registry.py::test_second_derivative

.PHONY: help ranks demo test quick test-all lint format bench compare fuzz-programs attack planted soak docs stubs reference site clean interop ecosystem ecosystem-record
.NOTPARALLEL:

help:
	@echo "make demo    train a small GPT under the profiler; table, trace, stacks and memory timeline in build/demo"
	@echo "make test    run the tests (PYTEST_ARGS='-k name' to choose)"
	@echo "make quick   the tests that catch most mistakes, in less than a minute"
	@echo "make test-all  the tests on every interpreter found among $(VERSIONS:%=python%)"
	@echo "make lint    ruff, ruff format, codespell, mypy, import-linter"
	@echo "make format  rewrite the sources as ruff formats them"
	@echo "make bench   time profiler, dispatch and training against the stored figures, or TORCH_PYTHON=/path/to/python's torch"
	@echo "make compare every op with PyTorch's own samples, in TORCH_PYTHON=/path/to/python's torch and here"
	@echo "make fuzz-programs  random programs in TORCH_PYTHON=/path/to/python's torch and here (PROGRAMS=100000, SEED=1)"
	@echo "make interop open traces in TensorBoard's plugin, HolisticTraceAnalysis, VizTracer and speedscope; a notebook, an MCP client (needs the network)"
	@echo "make ecosystem  libraries that use torch, as they are, on this runtime (needs the network)"
	@echo "make ecosystem-record  write down what they give with TORCH_PYTHON=/path/to/python's torch"
	@echo "make attack  try to break each promise of docs/reliability.md at length; a line for each, held or broken"
	@echo "make planted record programs with a known problem and programs without; the advice names each, and nothing else"
	@echo "make ranks   mtprof ranks on made-up jobs of many ranks: faults named, clocks, engines, CPU a file, merging"
	@echo "make soak    what takes long: kills, starts and kills of ranks, ten million ops, fuzzing, threads (SOAK_MINUTES=30)"
	@echo "make docs    record the demo and write docs/commands, its pictures and the parity table (needs Chromium)"
	@echo "make stubs   write the type stubs from the list of ops"
	@echo "make reference  write the reference pages from the ops' signatures and examples"
	@echo "make site    build docs/ as a site that works offline, in build/site"
	@echo "make clean   remove .venv, build and caches"
	@echo "PYTHON=python3.12 chooses the interpreter"

demo: $(RUN)
	$(BIN)/python examples/train_gpt.py --out build/demo

# Tests start hundreds of processes. Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each would compile the package again.
test: $(DEV)
	@$(BIN)/python -m compileall -q -j 2 src
	$(BIN)/python -m pytest -q -n 2 $(PYTEST_ARGS)

quick: $(DEV)
	@$(BIN)/python -m compileall -q -j 2 src
	$(BIN)/python -m pytest -q -n 2 $(QUICK) $(PYTEST_ARGS)

# Each interpreter has its own environment in build/, so that .venv stays as it is.
test-all:
	@failed=; for version in $(VERSIONS); do \
		if ! python$$version -c '' 2> /dev/null; then echo "python$$version: not on this machine"; continue; fi; \
		echo "python$$version:"; \
		$(MAKE) --no-print-directory test PYTHON=python$$version VENV=build/venv-$$version || failed="$$failed $$version"; \
	done; \
	test -z "$$failed" || { echo "failed on:$$failed"; exit 1; }

lint: $(DEV)
	$(BIN)/ruff check --output-format concise .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV)
	$(BIN)/ruff format .

bench: $(RUN)
	$(BIN)/python benchmarks/bench.py --clock cpu $(if $(TORCH_PYTHON),--base torch --base-python '$(TORCH_PYTHON)',--base stored) $(BENCH_ARGS)

compare: $(RUN)
	@test -n '$(TORCH_PYTHON)' || { echo "TORCH_PYTHON=/path/to/python names an interpreter that has torch"; exit 1; }
	'$(TORCH_PYTHON)' tools/compare_ops.py sample build/ops
	$(BIN)/python tools/compare_ops.py check build/ops

fuzz-programs: $(RUN)
	@test -n '$(TORCH_PYTHON)' || { echo "TORCH_PYTHON=/path/to/python names an interpreter that has torch"; exit 1; }
	$(BIN)/python tools/fuzz_programs.py run --torch '$(TORCH_PYTHON)' --count $(PROGRAMS) --seed $(SEED)

attack: $(DEV)
	$(BIN)/python tests/attack/run.py $(ATTACK_ARGS)

ranks: $(RANKS)/.installed
	$(RANKS)/venv/bin/python benchmarks/ranks.py planted --seeds 50
	$(RANKS)/venv/bin/python benchmarks/ranks.py clocks --seeds 10 --ranks 128
	$(RANKS)/venv/bin/python benchmarks/ranks.py engines --ranks 104
	$(RANKS)/venv/bin/python benchmarks/ranks.py cost --ranks 1000
	$(RANKS)/venv/bin/python benchmarks/ranks.py digests --ranks 10000
	$(RANKS)/venv/bin/python benchmarks/ranks.py hta --ranks 32 --events 20000

planted: $(DEV)
	$(BIN)/python tests/planted/run.py $(PLANTED_ARGS)

soak: $(DEV)
	MACHINE_RUNS=10000 $(BIN)/python -m pytest -q -n 2 tests/mindtorch_v2/profiler/session/test_lifecycle_machine.py
	$(BIN)/python tests/soak/kills.py --kills 200
	DDP_TRAININGS=all $(BIN)/python -m pytest -q tests/mindtorch_v2/distributed/test_training.py
	$(BIN)/python tests/soak/starts.py --starts 100
	$(BIN)/python tests/soak/rank_kills.py --kills 50
	$(BIN)/python tests/soak/ten_million.py
	$(BIN)/python tests/soak/threads.py --seconds $$(( 60 * $(SOAK_MINUTES) ))
	$(PIP) install --editable '.[dev,fuzz]'
	for loader in trace saved checkpoint; do \
		$(BIN)/python tools/fuzz.py $$loader --seconds $$(( 40 * $(SOAK_MINUTES) )) || exit 1; \
	done

docs: $(DEV)
	$(BIN)/python tools/command_pages.py
	$(BIN)/python tools/parity_table.py

stubs: $(DEV)
	$(BIN)/python tools/stubs.py

reference: $(DEV)
	$(BIN)/python tools/reference.py

site: $(SITE)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir build/site
	@echo "build/site/index.html"

# With the tools that `make test` has not, uvloop and VizTracer, and with those it has, so that nothing of it is left out.
BESIDE := tests/mindtorch_v2/profiler/session/test_beside_other_tools.py
interop: $(INTEROP)/.installed
	INTEROP_FOLDER=$(INTEROP) $(INTEROP)/venv/bin/python -m pytest -q -W ignore -o pythonpath=tests/interop --confcutdir=tests/interop tests/interop $(BESIDE) $(PYTEST_ARGS)
	@cat $(INTEROP)/figures.txt 2> /dev/null || true  # of the traces that were read, if they were among the chosen tests

ecosystem: $(ECOSYSTEM)/.installed
	ECOSYSTEM=run $(ECOSYSTEM)/venv/bin/python -m pytest -q -n 2 -W ignore -o pythonpath=tests/ecosystem --confcutdir=tests/ecosystem tests/ecosystem $(PYTEST_ARGS)

ecosystem-record: $(ECOSYSTEM)/.installed-torch
	ECOSYSTEM=record $(ECOSYSTEM)/venv-torch/bin/python -m pytest -q -n 2 -W ignore -o pythonpath=tests/ecosystem --confcutdir=tests/ecosystem \
		tests/ecosystem $(PYTEST_ARGS)

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

# The list of files that setuptools leaves in src makes pytest rewrite the assertions of the whole package, in every process.
$(DEV): pyproject.toml $(MADE)
	$(PIP) install --editable '.[dev]'
	@rm -rf src/*.egg-info
	@sh tools/browser.sh
	@touch $(RUN) $@

$(SITE): pyproject.toml $(MADE)
	$(PIP) install --editable '.[docs]'
	@touch $(RUN) $@

# s3fs wants its own release of botocore, so moto comes after it, and with the boto3 of that release.
$(RANKS)/.installed: pyproject.toml
	$(PYTHON) -m venv $(RANKS)/venv
	$(RANKS)/venv/bin/python -m pip --quiet --disable-pip-version-check install --editable '.[distributed,dask,ray,remote]' 'aiobotocore[boto3]'
	$(RANKS)/venv/bin/python -m pip --quiet --disable-pip-version-check install 'aiobotocore[boto3]' moto flask flask-cors HolisticTraceAnalysis
	@touch $@

# Without npm the tests of speedscope are skipped; where there is no build of mindspore, the one of its profiler.
$(INTEROP)/.installed: pyproject.toml
	$(PYTHON) -m venv $(INTEROP)/venv
	$(INTEROP)/venv/bin/python -m pip --quiet --disable-pip-version-check install --editable '.[interop]' anyio coverage gevent pyinstrument trio
	$(PYTHON) -m venv $(INTEROP)/ascend
	$(INTEROP)/ascend/bin/python -m pip --quiet --disable-pip-version-check install 'torch-tb-profiler-ascend>=0.4.0.11'
	if command -v npm > /dev/null; then npm install --prefix $(INTEROP) --no-audit --no-fund --silent speedscope@1 axe-core@4; fi
	$(PYTHON) -m venv $(INTEROP)/mindspore
	$(INTEROP)/mindspore/bin/python -m pip --quiet --disable-pip-version-check install 'mindspore>=2.10' setuptools || rm -r $(INTEROP)/mindspore
	@touch $@

$(ECOSYSTEM)/.installed: tests/ecosystem/libraries.txt tests/ecosystem/install.py
	$(PYTHON) tests/ecosystem/install.py $(ECOSYSTEM)/venv
	@touch $@

$(ECOSYSTEM)/.installed-torch: tests/ecosystem/libraries.txt tests/ecosystem/install.py
	@test -n '$(TORCH_PYTHON)' || { echo "TORCH_PYTHON=/path/to/python names an interpreter that has torch"; exit 1; }
	'$(TORCH_PYTHON)' tests/ecosystem/install.py --torch '$(TORCH_PYTHON)' $(ECOSYSTEM)/venv-torch
	@touch $@
