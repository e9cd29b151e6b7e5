# Every target sets up what it needs: a fresh checkout, Python 3.11 or newer and make are enough.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
UV := $(shell command -v uv 2>/dev/null)
# Bytecode is compiled once here: without it every start of the server takes twice as long.
ifneq ($(UV),)
CREATE := $(UV) venv --quiet --python "$$(command -v $(PYTHON))" $(VENV)
INSTALL := $(UV) pip install --compile-bytecode --python $(BIN)/python -c constraints.txt
else
CREATE := $(PYTHON) -m venv $(VENV)
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt
endif

.PHONY: help install serve page test semantic lint format docs pictures site check bench fuzz hostile soak build bundle clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	@echo "Setting up $(VENV): once, one to two minutes. Everything is said on stderr." >&2
	@test -x $(BIN)/python || $(CREATE) >&2
	@$(INSTALL) -e '.[dev]' >&2
	@touch $(STAMP)
	@echo "$(VENV) is ready." >&2

install: $(STAMP) ## Create .venv and install everything, at the tested versions

serve: $(STAMP) ## Serve this repository's own .knowledge over MCP on stdio
	@exec $(BIN)/sage serve --root .

page: $(STAMP) ## Look at this repository's own .knowledge in a browser
	@exec $(BIN)/sage page --root .

quick: $(STAMP) ## Run the tests that stay in one process: about a minute
	@$(BIN)/python -m pytest --quick -n auto --dist loadfile

# A file's tests share servers and installed clients, so they stay on one core; in the order of the
# folders the longest come first, and no core is idle while another finishes them.
test: $(STAMP) ## Run every test
	@$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder --cov --cov-report=term

semantic: $(STAMP) ## Install the extra semantic, and run its tests with their coverage
	@$(INSTALL) -e '.[semantic]' >&2
	@$(BIN)/python -m pytest tests/semantic --cov=sage.semantic --cov=sage.cli.meaning --cov-config=tests/semantic/coverage.ini \
	  --cov-report=term --cov-fail-under=90

lint: $(STAMP) ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(STAMP) ## Format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(STAMP) ## Write the generated reference pages
	@$(BIN)/python -m docs.generate

pictures: $(STAMP) ## Take the pictures of the page for the documentation (needs chromium)
	@$(BIN)/python -m docs.pictures

site: docs ## Build the documentation site into site/
	@$(INSTALL) -e '.[site]' >&2
	@$(BIN)/mkdocs build --strict --quiet

check: lint test ## Everything that must pass before a commit

bench: $(STAMP) ## Measure speed and quality side by side
	@$(BIN)/python -m benchmarks

fuzz: $(STAMP) ## Try INPUTS (1000000) mutations of pages and queries; SEED (1) makes others
	@$(BIN)/python -m tests.fuzzing --inputs $(or $(INPUTS),1000000) --seed $(or $(SEED),1)

hostile: $(STAMP) ## Try every command over REPOSITORIES (500) hostile repositories, from FIRST (0) on
	@$(BIN)/python -m tests.hostile --repositories $(or $(REPOSITORIES),500) --first $(or $(FIRST),0)

soak: $(STAMP) ## Call and edit for MINUTES (15) over TRANSPORT (http); report in build/soak/
	@$(BIN)/python -m benchmarks.soak --minutes $(or $(MINUTES),15) --transport $(or $(TRANSPORT),http)

build: $(STAMP) ## Build the wheel and the source archive into dist/
	@$(BIN)/python -m build

bundle: $(STAMP) ## Build the .mcpb file for one-click install into dist/
	@$(BIN)/python -m docs.bundle
	@if command -v npx >/dev/null; then \
	  npx --yes @anthropic-ai/mcpb@2.1.2 validate dist/manifest.json; \
	else echo "npx was not found: the manifest is not validated" >&2; fi

clean: ## Remove what the other targets made
	rm -rf $(VENV) build dist site .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis
