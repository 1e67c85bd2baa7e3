# `make install`, `make demo` and `make test` work on a fresh clone with Python 3.11 or newer: each creates .venv
# and installs what it needs into it. `make install` is the command without training and the tools of developers.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BASE := $(VENV)/.installed
TRAIN := $(VENV)/.installed-train
STAMP := $(VENV)/.installed-dev
PIP := $(BIN)/pip install -qq --disable-pip-version-check
DEMO := build/demo
ALONE := verifier runtime learn trainer

# The tests start hundreds of processes: what one of them has compiled of Python, the next one reads.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-train install-dev demo test slow test-alone lint unit tools proof docs wheels release bench mutants schema clean

$(BASE): pyproject.toml verifier/pyproject.toml runtime/pyproject.toml learn/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "labeldp needs Python 3.11 or newer; say make PYTHON=python3.12, for instance"; exit 1; }
	@echo "installing into $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e ./verifier -e ./runtime -e ./learn -e .
	@touch $@

$(TRAIN): $(BASE) trainer/pyproject.toml
	@echo "installing training into $(VENV) …"
	@$(PIP) -e ./verifier -e ./runtime -e ./learn -e '.[pages]' -e ./trainer
	@touch $@

$(STAMP): $(BASE) trainer/pyproject.toml
	@echo "installing training and the tools of developers into $(VENV) …"
	@$(PIP) -e ./verifier -e ./runtime -e ./learn -e '.[dev,docs]' -e ./trainer
	@touch $@

install: $(BASE)
install-train: $(TRAIN)
install-dev: $(STAMP)
install install-train install-dev:
	@echo "installed; in this shell say: source $(VENV)/bin/activate"

demo: $(BASE)
	@rm -rf $(DEMO) && $(BIN)/labeldp demo -o $(DEMO) --yes

test: lint unit
	@mkdir -p build && $(MAKE) --no-print-directory demo > build/demo.log 2>&1 || (cat build/demo.log; exit 1)
	@echo "left out, for make slow: packages, kills, statistics over many runs, and files changed in every place"
	@echo "left out, for make tools: tests that need PostgreSQL, Spark (Java), Node, Chromium, C++, LightGBM, XGBoost, MLflow, Beam or Coq"

# Tests marked slow, which make test leaves out.
slow:
	@$(MAKE) --no-print-directory unit MARKED=slow

# Tests of optional tools, which make test leaves out. What is missing is installed where it can be; else that is said, and with
# LABELDP_ALL=1 it is a failure.
tools: export OPENBLAS_NUM_THREADS := 1
tools: $(STAMP)
	@tests/ledger/install
	@runtime/tests/engines/install
	@tests/languages/install
	@learn/tests/boosters/install
	@tests/mlflow/install
	@runtime/tests/beam/install
	@tests/proofs/install
	@$(BIN)/pytest -rs -n 2 --dist loadfile --tools only $(UNIT_TESTS)

# Each distribution's tests with its own wheel, what it requires and its test tools alone; with
# LABELDP_LONG=1 the slow ones, too. Programs that unit has compiled are read.
test-alone: export OPENBLAS_NUM_THREADS := 1
test-alone: $(STAMP)
	@$(JAX_CACHE) PYTHON="$(CURDIR)/$(BIN)/python" .ci/alone $(ALONE)

# Spelling, and the project's own list of words and longest sentence: .ci/words.txt.
SPELLED := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs verifier runtime learn labeldp_compile trainer benchmarks specs
lint: $(STAMP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --quiet --check .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python .ci/words
	@$(BIN)/codespell $(SPELLED)

# JAX has threads, and the tests of forks must not share a process with them. Folders are named, for
# pytest collects its testpaths even where --ignore names them.
JAX_TESTS := trainer/tests tests/docs/test_tutorial.py tests/docs/test_scenes.py tests/docs/test_preferences.py
UNIT_TESTS := tests verifier/tests runtime/tests learn/tests --ignore=tests/docs/test_tutorial.py --ignore=tests/docs/test_scenes.py --ignore=tests/docs/test_preferences.py
# Tests, and processes that are killed and resumed, compile the same programs: what one has compiled, the next one reads.
JAX_CACHE := JAX_COMPILATION_CACHE_DIR=$(CURDIR)/build/jax-cache JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Two processes of tests: linear algebra of several threads in each would wait for the other's.
MARKED := not slow
# To prepare asserts that show their values takes each process 20 seconds: only what failed is run with them, again.
QUICK := -n 2 --dist loadfile --assert=plain
AGAIN := $(BIN)/pytest --last-failed --last-failed-no-failures none
unit: export OPENBLAS_NUM_THREADS := 1
unit: $(STAMP)
	@$(BIN)/pytest $(QUICK) --tools without -m "$(MARKED)" $(UNIT_TESTS) || { $(AGAIN) $(UNIT_TESTS); exit 1; }
	@$(JAX_CACHE) $(BIN)/pytest $(QUICK) -m "$(MARKED)" $(JAX_TESTS) || { $(AGAIN) $(JAX_TESTS); exit 1; }

# The machine-checked proof: Coq compiles proofs/ and says what the theorems rest on. What is missing
# is installed where it can be; else that is said, and with LABELDP_ALL=1 it is a failure.
proof: $(STAMP)
	@tests/proofs/install
	@$(BIN)/pytest -rs tests/proofs

# The site of docs/, in build/site; a broken link is an error.
docs: $(STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict && echo build/site/index.html

# The five distributions, in build/wheels; tests/test_wheels.py installs them.
wheels: $(STAMP)
	@for folder in verifier runtime learn . trainer; do \
		$(BIN)/python -m build --no-isolation --outdir build/wheels $$folder > /dev/null || exit 1; done
	@ls build/wheels/*.whl

# The same of the last commit, built twice and compared, in dist/, with their digests and CycloneDX of
# what they need: docs/releasing.md.
release: $(STAMP)
	@PYTHON="$(CURDIR)/$(BIN)/python" .ci/release all dist

bench: $(STAMP)
	@for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# Do tests notice a changed operator or number in what decides about privacy? Hours; prints what survives.
mutants: export OPENBLAS_NUM_THREADS := 1
mutants: $(STAMP)
	@$(BIN)/pip install -qq --disable-pip-version-check 'cosmic-ray>=8.3'
	@$(BIN)/python benchmarks/mutants.py

schema: $(STAMP)
	@$(BIN)/labeldp schema > specs/labeldp-spec.schema.json
	@$(BIN)/labeldp schema --training > specs/labeldp-train.schema.json
	@$(BIN)/labeldp schema --policy > specs/labeldp-policy.schema.json
	@$(BIN)/labeldp schema --project > specs/labeldp-project.schema.json

clean:
	@rm -rf $(VENV) build .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@rm -rf runtime/examples/*/node_modules
