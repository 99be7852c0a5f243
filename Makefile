# make demo   train RTE, GCE and cross-entropy on noisy digits and compare them
# make quick  the tests that neither train nor start programs, in less than a minute on two cores
# make test   the test suite
# make check  format, lint, types
# make fuzz   ten thousand malformed files for every reader
# make wheel  wheel and sdist in dist/, the wheel tried in an empty environment
# make docs   the site, built strictly into site/
# Each sets up .venv on first use and again when the requirements change.

PYTHON ?= python3.11
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo quick test check docs fuzz wheel format clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/rte compare digits

quick: $(READY)
	$(BIN)/python -m pytest --quick --numprocesses auto --dist loadfile

test: $(READY)
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

fuzz: $(READY)
	$(BIN)/python tests/fuzz.py

wheel: $(READY)
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(PYTHON) -m venv dist/empty
	dist/empty/bin/python -m pip install --quiet --constraint constraints.txt torch
	dist/empty/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	cd dist && empty/bin/rte fit digits --epochs 1 --no-report --out try && test -f try/result.json
	$(BIN)/python tools/wheel.py dist

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt torch
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,docs,tune,weights,audit,hf,onnx,text]'
	touch $@

clean:
	rm -rf .venv runs site dist fuzz-findings .mypy_cache .pytest_cache .ruff_cache .hypothesis
