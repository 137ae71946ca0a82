# `make demo` and `make test` set up everything they need.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test docs trust paper versions lint format benchmark clean

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

# Half of the suite is compiling: here XLA compiles quickly rather than well, in `make trust` as for users. Fusion
# emitters and the split of an executable, which pathmix leaves out, are left out of what tests compile by themselves.
QUICKLY := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
	--xla_cpu_parallel_codegen_split_count=1

test: lint docs
	XLA_FLAGS="$(QUICKLY)" $(BIN)/pytest -n 2 --dist loadfile

# The pages, in site/. Links are checked, and that nothing is loaded from elsewhere.
docs: .venv/installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	! grep -rnoE '(src|<link[^>]* href)="https?:[^"]*"' site --include=*.html

# Slow checks of what inference gives, against exact answers; then every program of trust/, with defaults only.
trust: .venv/installed
	$(BIN)/pytest -n 2 --dist loadfile -m trust
	$(BIN)/python -m trust
	$(BIN)/python -m trust.calibration

# The quick part of the suite on the lowest and on the highest versions that pyproject.toml allows.
QUICK := tests/doors tests/program tests/guides tests/allocation tests/docs tests/discovery/test_discovery.py \
	tests/frontends/test_decisions.py tests/frontends/pyro/test_programs.py tests/methods/test_exact_answers.py

versions: .venv-lowest/installed .venv-highest/installed
	.venv-lowest/bin/python -m pytest -n 2 --dist loadfile $(QUICK)
	.venv-highest/bin/python -m pytest -n 2 --dist loadfile $(QUICK)

.venv-%/installed: pyproject.toml .ci/lowest.py
	$(PYTHON) -m venv .venv-$*
	$(PYTHON) .ci/lowest.py > .venv-$*/lowest.txt
	.venv-$*/bin/pip install --quiet --disable-pip-version-check --upgrade -e '.[dev]' \
		$(if $(filter lowest,$*),-c .venv-$*/lowest.txt)
	touch $@

# The paper's evaluation, small. Without --preset, an experiment runs all of it (see experiments/RESULTS.md).
paper: .venv/installed
	$(BIN)/python -m experiments.two_branches --preset quick
	$(BIN)/python -m experiments.ten_branches --preset quick
	$(BIN)/python -m experiments.mixture --preset quick
	$(BIN)/python -m experiments.gaussian_process --preset quick
	$(BIN)/python -m experiments.online --preset quick

format: .venv/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Small sizes of what grows, some minutes; `make benchmark SIZES=` has all of them, and takes much longer.
SIZES ?= --quick

benchmark: .venv/installed
	$(BIN)/python -m benchmarks.numpyro_contrib
	$(BIN)/python -m benchmarks.pyro_eager
	$(BIN)/python -m benchmarks.scaling $(SIZES) --json benchmarks/results/scaling.json
	$(BIN)/python -m benchmarks.growth $(SIZES) --json benchmarks/results/growth.json --plot benchmarks/results/growth.png

clean:
	rm -rf .venv .venv-lowest .venv-highest .pytest_cache .ruff_cache site
