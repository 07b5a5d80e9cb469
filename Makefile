# Everything works on a machine with Python 3.11, make and a package index; nothing else is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
DATA ?= ../shared/data
export OMP_NUM_THREADS ?= 1
export PYTHONHASHSEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint types imports format coverage bench-smoke bench-recall lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EviCortex needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP)  ## Create .venv with everything pinned

demo: $(STAMP)  ## Remember, recall, correct and purge a conversation (LOCOMO=path for your own file)
	$(BIN)/evicortex demo $(if $(LOCOMO),--locomo "$(LOCOMO)")

test: $(STAMP)  ## Run the tests, warnings as errors
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

lint: $(STAMP)  ## Lint and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

imports: $(STAMP)  ## Who may know whom
	$(BIN)/lint-imports

coverage: $(STAMP)  ## Tests with branch coverage and its floors
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --cov --cov-branch --cov-report= 
	$(BIN)/coverage report --fail-under=95
	$(BIN)/coverage report --include='*/policy/*,*/validity/*,*/validation/*' --fail-under=100

check: lint types imports coverage  ## Everything that must hold before a change lands

format: $(STAMP)  ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench-smoke: $(STAMP)  ## Recall, ingest and latency on the development data (DATA=folder)
	$(BIN)/python -m benchmarks.smoke --data "$(DATA)/locomo/locomo_dev6.json"

bench-recall: $(STAMP)  ## The recall ladder on the development sets (DATA=folder, takes an hour)
	@mkdir -p bench-output
	$(BIN)/python -m benchmarks.run_recall --locomo "$(DATA)/locomo/locomo_dev6.json" \
	  --realtalk "$(DATA)/realtalk/realtalk_dev4.json" \
	  --implicit "$(DATA)/locomo_plus/implicit_dev201.json" --haystack "$(DATA)/locomo/locomo_dev6.json" \
	  --needles "$(DATA)/longmemeval/needles_one_record.json" --record "$(DATA)/longmemeval/longmemeval_s_one_record.json" \
	  --json bench-output/recall.json

lock: $(STAMP)  ## Renew requirements.lock from pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links --extra dev --extra local --extra http --extra bench -o requirements.lock pyproject.toml

clean:  ## Remove what was built
	rm -rf $(VENV) build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis bench-output demo-output
