# `make grade` and `make test` set everything up by themselves; `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SOLUTION := solutions/03_flash_attention/flash_attention.cu
BROKEN := tests/submissions/fail_returns_before_the_load.cu

.PHONY: all help grade test lint format bench lock clean
all: $(STAMP)

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "flashgrade needs Python 3.11 or later; name one with: make PYTHON=python3.12"; exit 2; }
	@echo "setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

grade: $(STAMP) ## grade the reference solution and one broken submission on this machine
	@$(BIN)/grader grade $(SOLUTION) --out reports/solution
	@$(BIN)/grader grade $(BROKEN) --out reports/broken || [ $$? -eq 1 ]

test: $(STAMP) ## run the tests
	$(BIN)/python -m pytest -n $${TEST_WORKERS:-auto} $(ARGS)

lint: $(STAMP) ## ruff and strict mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(STAMP) ## format the Python code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(STAMP) ## measure the grader itself
	$(BIN)/python -m tests.bench

lock: ## pin the dependencies again (needs uv)
	uv pip compile pyproject.toml --extra dev --extra modal --extra similarity --generate-hashes \
	  --universal --python-version 3.11 --no-emit-index-url --no-header --quiet --output-file requirements.lock

clean: ## remove what make made
	rm -rf $(VENV) build dist reports .pytest_cache .mypy_cache .ruff_cache
