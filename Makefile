# The two commands of the README are `make book` and `make test`; the others are steps of them.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
NAME   ?=
PROFILE ?= quick
ARGS   ?=
export SPECBOOK_VENV := $(abspath $(VENV))

.PHONY: help env book chapter publish test lint bench soak doctor lock conda clean

help:  ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

env:  ## create .venv with the locked requirements and build the engine
	@$(PYTHON) tools/make_env.py

book: env  ## fetch the target, run every notebook against a real llama-server, build local/book
	@$(BIN)/specbook book --profile $(PROFILE) $(ARGS)

chapter: env  ## rerun one chapter into local/book and rebuild it: make chapter NAME=04_depth_regime
	@test -n "$(NAME)" || { echo "make chapter: no NAME; expected one of: $(basename $(notdir $(wildcard notebooks/*.ipynb)))" >&2; exit 2; }
	@$(BIN)/specbook chapter $(NAME) --profile $(PROFILE) $(ARGS)

publish: env  ## promote local chapters and the runs they show into the committed book
	@$(BIN)/specbook publish $(ARGS)

test: env  ## run the whole test suite
	@$(BIN)/python -m pytest $(ARGS)

lint: env  ## what CI checks before the tests
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	@$(BIN)/python tools/check_notebooks.py

bench: env  ## measure the figures of the README's table on this machine
	@$(BIN)/python benchmarks/run.py $(ARGS)

soak: env  ## the tests that take minutes; one of them: make soak ARGS="-k conversion"
	@$(BIN)/python -m pytest -m soak -v --timeout 3600 $(ARGS)

doctor: env  ## what would make a measurement on this machine untrustworthy
	@$(BIN)/specbook doctor

lock:  ## write the locks and environment.yml anew from pyproject.toml
	@$(BIN)/python tools/lock.py && $(MAKE) conda

conda:  ## write environment.yml anew from pyproject.toml
	@$(BIN)/python tools/conda.py

clean:  ## remove what was built here; models in the user's cache stay
	rm -rf local book/_build .mypy_cache .pytest_cache .ruff_cache
