# Everything a newcomer runs. Set-up goes into .venv beside this file; nothing else is touched
# but the user's cache directory, where Kafka's jars are kept.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Found as the program finds it: by JAVA_HOME if that leads to one, else on the PATH.
define CHECK_JAVA
java="$${JAVA_HOME:+$$JAVA_HOME/bin/java}"; [ -x "$$java" ] || java=java; \
version=$$("$$java" -version 2>&1 | sed -nE 's/.*version "(1\.)?([0-9]+).*/\2/p' | head -n 1); \
[ "$${version:-0}" -ge 17 ] || { echo "tsoffset needs Java 17 or later (Spark and the embedded Kafka run on it), and $$java is $${version:-missing}; set JAVA_HOME, or put a newer one on the PATH" >&2; exit 1; }
endef

PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# With extras, for pip would else look for a newer release of a package that another one wants with extras.
LOCK := $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-strip-extras --upgrade --custom-compile-command "make lock"

PYTEST := $(BIN)/python -m pytest
JAVA_FREE := not integration and not spark
# Tests with brokers wait more than they compute: two processes use what the other run leaves of two
# cores. All those of a file run in one process, so what its fixtures make on the brokers of the
# session is made once.
TWO := -n 2 --dist worksteal
TWO_WITH_BROKERS := -n 2 --dist loadfile

# Two runs of pytest, of the tests without brokers and of those with them, on a core each. The first
# one's output is shown when the second has ended; both must pass. Ctrl-C stops both runs.
# The arguments: which tests, options of the first run, and of the second.
define SIDE_BY_SIDE
first=$$(mktemp) || exit 1; \
$(PYTEST) $(2) -m "not integration and $(1)" >"$$first" 2>&1 & running=$$!; \
trap 'kill $$running 2>/dev/null; rm -f "$$first"' EXIT; trap 'exit 130' INT TERM; \
$(PYTEST) $(3) -m "integration and $(1)"; second=$$?; \
wait $$running; status=$$?; echo; echo "and without brokers:"; cat "$$first"; exit $$((status | second))
endef

# Compiled tests and modules are kept: without them each process compiles all again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup java demo test test-fast test-all test-long bench soak bench-check lint lock lock-jars
.PHONY: docs wheel image sbom audit

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

$(READY): .ci/build-requirements.lock .ci/requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tsoffset needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(CHECK_JAVA)
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --only-binary :all: -r .ci/build-requirements.lock
	$(PIP) --require-hashes --no-build-isolation -r .ci/requirements.lock
	$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

setup: $(READY) ## make .venv with the locked packages (the other targets do it themselves)

java: ## say which Java is used, and whether it will do
	@$(CHECK_JAVA); echo "$$java: Java $$version"

demo: $(READY) ## two brokers, MirrorMaker 2, a sync and a failover on this machine
	$(BIN)/tsoffset demo

# A part of the random examples: each run draws others, and `make test-long` draws many more.
test: export TSOFFSET_EXAMPLES := 0.4
test-all: export TSOFFSET_EXAMPLES := 0.15
test: $(READY) ## the quick and the slow tests, also on real brokers: six minutes on two cores
	@$(call SIDE_BY_SIDE,not thorough and not long,$(TWO))

# Some of these tests wait: three processes use two cores better than two do.
test-fast: $(READY) ## the quick tests without Java, with a fifth of the random examples: two minutes on two cores
	TSOFFSET_EXAMPLES=0.2 POLARS_MAX_THREADS=1 $(PYTEST) -n $$(($$(getconf _NPROCESSORS_ONLN) * 3 / 2)) --dist worksteal -m "$(JAVA_FREE) and not slow and not thorough and not long"

test-all: $(READY) ## the thorough tests, which `make test` leaves out: half an hour; needs the package index
	@$(call SIDE_BY_SIDE,thorough and not long,$(TWO),$(TWO_WITH_BROKERS))

# Coverage (of what, and how much it must be: pyproject.toml) takes most of the time of an example.
test-long: $(READY) ## all tests, also the long ones, with thirty times the random examples
	TSOFFSET_EXAMPLES=30 $(PYTEST) --cov

bench: $(READY) ## all benchmarks on real brokers, into docs/performance.md (two hours)
	$(BIN)/python -m benchmarks

soak: $(READY) ## a daemon under load for half an hour: does it grow, does it skip?
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.page

bench-check: $(READY) ## quick benchmarks; their ratios against benchmarks/baseline.json
	$(BIN)/python -m benchmarks.guard

lint: $(READY) ## ruff, mypy, the layers of the architecture, the declared dependencies, the prose
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry --no-ansi tsoffset
	$(BIN)/python .ci/prose.py

docs: $(READY) ## build the documentation site into dist/site; a broken link fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --config-file .ci/mkdocs.yml
	@echo "open dist/site/index.html"

# Two builds of one commit are the same, byte for byte.
wheel: $(READY) ## build dist/*.whl of what is committed
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build -t wheel

# BASE=... is another base image; EXTRAS=lab,report adds these extras.
image: ## build the container image and try it (with docker, podman or buildah)
	@BASE="$(BASE)" EXTRAS="$(EXTRAS)" docker/build.sh

sbom: $(READY) ## list the locked packages in dist/sbom.cdx.json (CycloneDX)
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml --output-file dist/sbom.cdx.json .ci/requirements.lock

audit: $(READY) ## look the locked packages up among known vulnerabilities (needs the network)
	$(BIN)/pip-audit --require-hashes --disable-pip --requirement .ci/requirements.lock

lock: $(READY) ## resolve the newest packages into .ci/*.lock
	$(LOCK) --extra dev --extra report --extra lab --group build --output-file .ci/requirements.lock pyproject.toml
	$(LOCK) --group build --constraints .ci/requirements.lock --output-file .ci/build-requirements.lock
	$(LOCK) --constraints .ci/requirements.lock --output-file .ci/runtime.lock pyproject.toml
	$(LOCK) --extra report --extra lab --constraints .ci/requirements.lock --output-file .ci/extras.lock pyproject.toml

# By the Ivy inside pyspark, whose checksums are the repository's own. The first version is that of
# the product.
lock-jars: $(READY) ## resolve the jars of Kafka and of Spark's connector into *.sha256
	@$(CHECK_JAVA); folder=$$(mktemp -d) || exit 1; trap 'rm -rf "$$folder"' EXIT; \
	lock() { \
		"$$java" -Divy.default.ivy.user.dir="$$folder/ivy" $$2 -cp "$$(echo $(VENV)/lib/python3*/site-packages/pyspark/jars/ivy-*.jar)" org.apache.ivy.Main \
			-m2compatible -ivy .ci/$$1.xml -types jar bundle -retrieve "$$folder/$$3/[orgPath]/[module]/[revision]/[artifact]-[revision](-[classifier]).[ext]" && \
		(cd "$$folder/$$3" && find . -name '*.jar' | cut -c3- | LC_ALL=C sort | xargs sha256sum) >tsoffset/lab/embedded/$$3.sha256; \
	}; \
	wanted=kafka-jars; \
	for version in $$($(BIN)/python -c 'from tsoffset.lab.embedded.jars import PINNED; print(*PINNED)'); do \
		lock $$wanted -Dkafka.version=$$version jars-$$version || exit 1; \
		wanted=kafka-jars-older; \
	done; \
	version=$$($(BIN)/python -c 'from tsoffset.lab.embedded.jars import SPARK_KAFKA_VERSION; print(SPARK_KAFKA_VERSION)'); \
	lock spark-kafka-jars -Dspark.kafka.version=$$version spark-kafka-$$version
