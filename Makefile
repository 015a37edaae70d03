# `make demo` and `make test` need Python 3.11 or newer and nothing else; both set up .venv on first use.
#
#   PYTHON=python3.12   the interpreter .venv is made with
#   VENV=.venv          another folder for the environment; one that exists is used, a fitting torch in it is kept
#   PIP_FLAGS=...       added to every `pip install`, e.g. --extra-index-url and the address of PyTorch's CPU builds
#   WORKERS=2           test processes
#   N=20000             how much `make fuzz` and `make kills` try
#   ARGS=...            added to the command that a target runs: make test ARGS='-m "not slow"'

PYTHON ?= python3
VENV ?= .venv
PIP_FLAGS ?=
WORKERS ?= 2
ARGS ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input $(PIP_FLAGS)
TORCH := $(shell sed -n 's/^\(torch==[^ ]*\).*/\1/p' constraints.txt)
OFFLINE := OMP_NUM_THREADS=1 TOKENIZERS_PARALLELISM=false HF_HUB_OFFLINE=1 PYTHONDONTWRITEBYTECODE=
MADE := $(VENV)/.made-

.DEFAULT_GOAL := help
.PHONY: help install research demo test quick mutations smoke goldens fuzz kills contract audit bounds wheel lint types check bench pages docs leaderboard clean
.DELETE_ON_ERROR:

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile | expand -t 18

install: $(MADE)core ## the package and what it needs, in .venv; no torch

research: $(MADE)dev ## torch beside it, and what research, people and the tests need

demo: $(MADE)core ## a conversation: emotion, cause words, reply
	@$(BIN)/empatheia demo $(ARGS)

test: $(MADE)dev ## the whole suite; real corpora too where EMPATHEIA_DATA names their folder
	@$(OFFLINE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

quick: $(MADE)dev ## the parts everything stands on, and the project's own rules, in a minute or so
	@$(OFFLINE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow" $(addprefix tests/,text layers side_inputs metrics project) $(ARGS)

mutations: $(MADE)dev ## one mistake at a time in a copy of src; the tests of that part must notice each
	@$(OFFLINE) $(BIN)/python tests/mutation_check.py $(ARGS)

smoke: $(MADE)dev ## a recipe of each family trained and measured on the self-written sample, in build/smoke; ALL=1: every one
	@rm -rf build/smoke; mkdir -p build
	@ls recipes/*/*.yaml | grep -Ev '^recipes/(curation|studies)/' | awk -F/ '$(if $(ALL),1,!seen[$$2]++)' > build/smoke.txt
	@$(OFFLINE) xargs -P $(WORKERS) -n $(if $(ALL),22,4) $(BIN)/empatheia train --size smoke --quiet --out build/smoke $(ARGS) < build/smoke.txt
	@echo "$$(wc -l < build/smoke.txt) recipes trained at smoke size"

goldens: $(MADE)dev ## what the package says, beside what it said when ARGS=--keep was given: before code moves
	@$(OFFLINE) $(BIN)/python tests/goldens/goldens.py $(ARGS)

fuzz: $(MADE)dev ## N damaged files and odd command lines; the table goes to results/robustness.md
	@$(OFFLINE) $(BIN)/python tests/attacks/fuzz.py --cases $(or $(N),20000) $(ARGS)

kills: $(MADE)dev ## N kills of commands, full disks, many processes at once; equal ends or an error
	@$(OFFLINE) $(BIN)/python tests/attacks/kills.py --kills $(or $(N),30) $(ARGS)

contract: $(MADE)dev ## transformers' own model tests on every responder; fetches them once
	@$(OFFLINE) $(BIN)/python tests/responders/mixins/run.py build/contract $(ARGS)

audit: $(MADE)dev ## known faults of the pinned packages, where advisories can be asked for
	@$(BIN)/python tests/project/audit.py build/audit

bounds: $(MADE)venv ## the quick tests and every responder at both ends of the allowed versions; results/bounds.md
	@$(OFFLINE) PIP_FLAGS="$(PIP_FLAGS)" $(BIN)/python tests/project/bounds.py "$(TORCH)" $(ARGS)

wheel: $(MADE)venv ## the package built, installed in an empty environment, and each kind of command run there
	@PIP_FLAGS="$(PIP_FLAGS)" $(BIN)/python tests/project/wheel.py build/wheel "$(TORCH)" $(ARGS)

lint: $(MADE)dev ## ruff: style, names, docstrings, complexity, format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .

types: $(MADE)dev ## pyright
	@PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

check: lint types test smoke ## all of CI

bench: $(MADE)dev ## speed beside a naive loop
	@for file in startup generation_speed analyze_speed score_speed words_speed training_overhead serve_speed; do $(BIN)/python benchmarks/$$file.py $(ARGS) || exit 1; done

pages: $(MADE)dev ## what is written from results/ and by the listener: README.md, docs/reproduction.md, results/README.md ...
	@$(BIN)/python docs/generate_readme.py
	@$(BIN)/python docs/generate_examples.py
	@$(BIN)/python docs/generate_reproduction.py
	@$(BIN)/python -c "from pathlib import Path; from empatheia_research.reports.results_page import PAGE, results_page; Path('results', PAGE).write_text(results_page(Path('results')), encoding='utf-8')"

docs: $(MADE)docs ## the documentation as a website in build/site
	@$(BIN)/python docs/generate_cli.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

leaderboard: $(MADE)dev ## all runs in results/ as one page, build/leaderboard.html
	@mkdir -p build
	@$(BIN)/empatheia leaderboard --out build/leaderboard.html $(ARGS)

clean: ## removes .venv, caches and built files; never runs/
	@rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis
	@find src tests docs examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp for each step that ended well: a second call is instant, an interrupted one is taken up again.
$(MADE)venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' is missing or older than Python 3.11. Install it (Debian: apt-get install python3 python3-venv)" >&2; \
	  echo "make: or name one: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "make: '$(PYTHON)' cannot make virtual environments (venv or ensurepip is missing)." >&2; \
	  echo "make: Debian: apt-get install python3-venv, then the same command again." >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { echo "Making $(VENV) ..."; $(PYTHON) -m venv $(VENV); }
	@touch $@

# torch comes first and alone: asked for by another package, pip would fetch its newest build instead.
$(MADE)torch: $(MADE)venv constraints.txt
	@echo "Installing $(TORCH), the largest part ..."
	@$(PIP) "$(TORCH)"
	@touch $@

$(MADE)core: $(MADE)venv pyproject.toml
	@echo "Installing empatheia ..."
	@$(PIP) -c constraints.txt -e .
	@touch $@

$(MADE)dev: $(MADE)torch pyproject.toml
	@echo "Installing empatheia with what its tests need ..."
	@$(PIP) -c constraints.txt -e ".[dev,encoder]"
	@touch $@ $(MADE)core

$(MADE)docs: $(MADE)dev
	@echo "Installing what the documentation needs ..."
	@$(PIP) -c constraints.txt -e ".[docs]"
	@touch $@
