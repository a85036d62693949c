# Two commands do everything on a fresh machine: `make quickstart` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKERS ?= 2
# tests start many processes, which else would each compile every module they import
unexport PYTHONDONTWRITEBYTECODE
# runs of the quickstart; the paper has 100
RUNS ?= 24

.PHONY: install quickstart example agent test test-quick test-slow test-lowest test-newest check docs docs-status bench reproduction theory continuous clean

install: $(READY)

$(READY): pyproject.toml setup.py
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	touch $(READY)

quickstart: install
	$(BIN)/brmdp reproduce riverswim-6 --runs $(RUNS) --workers $(WORKERS) --out results/quickstart
	@echo "Next: make example takes a log file to a decision and a page, in under a minute."

# from a log file to a page
example: install
	@mkdir -p results
	$(BIN)/brmdp decide examples/fleet/model.toml --report results/fleet.html
	@echo "Open results/fleet.html in a browser; examples/fleet/README.md says how to read it."

# an agent in a loop of its own
agent: install
	$(BIN)/python examples/pump.py

test: install
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow"

# the fast tests without those marked long
test-quick: install
	$(BIN)/python -m pytest -n $(WORKERS) -m "not slow and not long"

test-slow: install
	$(BIN)/python -m pytest -n $(WORKERS) -m slow

# the fast tests on the lowest versions that pyproject.toml allows, and on the newest there are, each in a folder of its own
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-lowest/bin/python -m pip install --quiet --constraint constraints-lowest.txt \
	  --editable ".[experiments,decide,cluster,continuous,test,bench]"
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)-lowest/numba $(VENV)-lowest/bin/python -m pytest -n $(WORKERS) -m "not slow" \
	  -W ignore::DeprecationWarning -W ignore::pytest.PytestUnraisableExceptionWarning
# warnings of old packages that rest on new ones, which have no bounds here; and of JAX 0.4 when loky 3.4 starts a process

test-newest:
	$(PYTHON) -m venv $(VENV)-newest
	$(VENV)-newest/bin/python -m pip install --quiet --upgrade pip
	$(VENV)-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager --editable ".[all]"
	NUMBA_CACHE_DIR=$(CURDIR)/$(VENV)-newest/numba $(VENV)-newest/bin/python -m pytest -n $(WORKERS) -m "not slow"

check: install
	$(BIN)/ruff check src tests benchmarks examples docs
	$(BIN)/ruff format --check src tests benchmarks examples docs
	$(BIN)/mypy
	$(BIN)/lint-imports

# the site, in build/docs; a warning is an error, and what was built is checked
docs: install
	rm -rf build/docs build/docs-doctrees docs/generated docs/reference/api
	$(BIN)/python -m sphinx -W --keep-going -q -E -j $(WORKERS) -d build/docs-doctrees docs build/docs
	$(BIN)/python docs/check.py build/docs
	@echo "Open build/docs/index.html in a browser; it needs no network."

docs-status: install
	$(BIN)/python docs/refresh.py --check

bench: install
	$(BIN)/python -m benchmarks

reproduction: install
	$(BIN)/brmdp reproduce all --workers $(WORKERS)
	$(BIN)/brmdp reproduce quantile-methods --workers $(WORKERS)
	$(BIN)/python docs/refresh.py results

theory: install
	for name in normality coverage examples optimism lemmas bayesian-regret; do \
	  $(BIN)/brmdp reproduce $$name --workers $(WORKERS) || exit 1; \
	done
	$(BIN)/python docs/refresh.py results

continuous: install
	$(BIN)/brmdp reproduce continuous --workers $(WORKERS)
	$(BIN)/python docs/refresh.py results

clean:
	rm -rf $(VENV) $(VENV)-lowest $(VENV)-newest build docs/generated docs/reference/api dist results .pytest_cache .mypy_cache .ruff_cache .hypothesis
