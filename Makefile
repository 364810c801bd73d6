# tamis: the commands of a developer and of CI. Each makes .venv by itself when it is missing or stale.
# Another interpreter: make PYTHON=python3.12 test

PYTHON ?= python3
BIN    := .venv/bin
READY  := .venv/.ready

# Spark starts workers with this interpreter, not with whichever python3 the PATH finds.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# Spark listens on loopback only.
export SPARK_LOCAL_IP ?= 127.0.0.1

# uv does not read pip's settings: hand on those that a machine may have set for pip.
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif
ifneq ($(wildcard $(PIP_FIND_LINKS)),)
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
ifdef PIP_CERT
export SSL_CERT_FILE ?= $(PIP_CERT)
endif
export UV_HTTP_TIMEOUT ?= 180

.DEFAULT_GOAL := help
.PHONY: help demo test with-session without-session check bench soak mutants lock clean java

help:  ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 16

demo: java $(READY)  ## show what works: make a table, explain, read and join it
	@$(BIN)/tamis demo

test: java check  ## check, then every test suite, in two processes
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target with-session without-session

with-session without-session:
	$(BIN)/pytest -m "$(if $(filter with-session,$@),session,not session)"

check: java $(READY)  ## lint, format, types, import direction, and the examples in code and docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest -q --doctest-modules --doctest-glob='*.md' tests/unit/test_imports.py src README.md docs

bench: java $(READY)  ## run every benchmark against its peer
	$(BIN)/python -m bench

soak: java $(READY)  ## the property tests, the contract, races and crashes with a long, random budget
	TAMIS_HYPOTHESIS_PROFILE=soak $(BIN)/pytest tests/property tests/contract tests/engines/test_delta_generated.py \
	  tests/engines/test_races.py tests/engines/test_crashes.py

mutants: $(READY)  ## break the source one line at a time, and say which breaks no test notices
	$(BIN)/python -m tests.mutants.run

lock: $(READY)  ## compile requirements/dev.txt anew, with the newest versions that resolve together
	$(BIN)/uv pip compile --quiet --upgrade --python-version 3.11 --extra all --custom-compile-command 'make lock' \
	  pyproject.toml requirements/dev.in --output-file requirements/dev.txt
	@! grep -n 'https\?:' requirements/dev.txt || { echo 'requirements/dev.txt names a registry' >&2; exit 1; }

clean:  ## remove .venv, caches and generated tables
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis bench/.cache dist spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

# pip brings uv, uv brings exactly what is pinned, and the project itself is installed in place.
$(READY): pyproject.toml requirements/bootstrap.txt requirements/dev.txt
	@$(PYTHON) -c 'import sys, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null || { \
	  echo 'tamis needs Python 3.11, 3.12 or 3.13 with venv: install it (Debian: python3 python3-venv), or name one: make PYTHON=python3.12' >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/bootstrap.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python requirements/bootstrap.txt requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/python -m compileall -q src
	@touch $@

# "17.0.15" is 17, "1.8.0_402" is 8.
java:
	@v=$$("$${JAVA_HOME:+$$JAVA_HOME/bin/}java" -version 2>&1 | sed -n 's/.*version "\(1\.\)\{0,1\}\([0-9]*\).*/\2/p' | head -n 1); \
	[ "$${v:-0}" -ge 17 ] || { \
	  echo "tamis needs Java 17 or newer for Spark, found $${v:-none}: install a JDK (Debian: openjdk-17-jre-headless) or set JAVA_HOME" >&2; exit 1; }
