# `make demo` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint format benchmark clean

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

demo: .venv/installed
	$(BIN)/python examples/demo.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

test: lint
	$(BIN)/pytest -n 2 --dist loadfile

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

benchmark: .venv/installed
	$(BIN)/python -m benchmarks.numpyro_contrib
	$(BIN)/python -m benchmarks.pyro_eager

clean:
	rm -rf .venv .pytest_cache .ruff_cache
