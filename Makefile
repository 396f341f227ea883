# Two commands for a newcomer: `make demo` and `make test`. `make check` is for every commit. `make vsix` packages the
# VS Code extension with the server in it, `make e2e` tests it in real windows; both need Node 20 or newer and npm.
# A running training (`midfill train`) is paused while anything is tested, and goes on afterwards.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
paused = trap '$(BIN)/midfill train --continue' EXIT; $(BIN)/midfill train --pause;

.PHONY: demo test check e2e vsix setup format clean

demo: setup
	$(BIN)/midfill demo

test: setup
	@$(paused) $(BIN)/python -m pytest

check: setup
	@$(paused) $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/python -m pytest -m "not slow"

e2e: vsix
	cd editors/vscode && npm run --silent check && npm test --silent
	@$(paused) editors/vscode/e2e/run

vsix: setup
	rm -rf build editors/vscode/server
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir editors/vscode/server .
	cd editors/vscode && npm ci --silent && npm run --silent package

format: setup
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("midfill needs Python 3.11 or newer, this is %d.%d: make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

clean:
	rm -rf .venv build dist *.egg-info
