# Every target prepares .venv first (scripts/environment.py; nothing to do takes a moment).
# GNU make 3.81 or newer. All paths are relative, so the checkout may lie anywhere, spaces and all.
#
#   make test ARGS='tests/unit -k merge'     arguments for the command behind the target
#   make demo PYTHON=/path/to/python3.12     another Python than the first that runs

PYTHON ?=
ARGS ?=
export PYTHON

.DEFAULT_GOAL := help
.PHONY: help environment demo stop test lint bench bench-merge clean

help:
	@echo "make demo    start everything with data to look at; prints an address and logins; Ctrl-C stops it"
	@echo "make stop    stop a demo that runs in another terminal"
	@echo "make test    run the whole suite (its own database and queue, a real browser where one is found)"
	@echo "make lint    ruff and mypy"
	@echo "make bench   measure what the README's figures come from"
	@echo "make bench-merge   measure what may merge by itself, on every labelled pair and on dated facts"
	@echo "make clean   remove .venv and caches; the demo's data in .palimpsest stays"

# A name on the PATH may be a shim that does not run: the candidate must answer before it is taken.
environment:
	@set -- .venv/bin/python python3.13 python3.14 python3.12 python3.11 python3; \
	if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; fi; \
	for candidate in "$$@"; do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    exec "$$candidate" scripts/environment.py; \
	  fi; \
	done; \
	echo "Palimpsest needs Python 3.11 or newer, and none of these runs as one: $$*. Install one, or name it: make PYTHON=/path/to/python3" >&2; \
	exit 1

demo: environment
	@exec .venv/bin/python -m memory_site.embedded run --prepare demo $(ARGS)

stop: environment
	@exec .venv/bin/python -m memory_site.embedded stop $(ARGS)

test: environment
	@exec .venv/bin/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS)

lint: environment
	.venv/bin/python -m ruff check .
	.venv/bin/python -m ruff format --check .
	.venv/bin/python -m mypy

bench: environment
	@exec .venv/bin/python -m benchmarks $(ARGS)

bench-merge: environment
	@exec .venv/bin/python -m benchmarks.merging $(ARGS)

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis test-artifacts htmlcov .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
