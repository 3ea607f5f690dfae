# `make help` lists the targets. Everything is built into .venv and target/; nothing else is touched,
# but ~/.cache/pykafka_core, where `spark_udfs` keeps Spark's Kafka connector.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
export PATH := $(CURDIR)/.venv/bin:$(PATH)
# maturin would fetch a toolchain when cargo is missing; tools/need says what to install instead.
export MATURIN_NO_INSTALL_RUST := 1
# clippy and maturin must see one pyo3 environment, or they rebuild it in turns.
export PYO3_PYTHON := $(CURDIR)/.venv/bin/python
export PYO3_BUILD_EXTENSION_MODULE := 1
export PYO3_ENVIRONMENT_SIGNATURE := $(shell $(PYTHON) -c 'import sys; print("cpython-%d.%d-64bit" % sys.version_info[:2])')

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find rust -name '*.rs' -o -name Cargo.toml)
COMPILED := pykafka_core._core $(patsubst pyx/%.pyx,pykafka_core._%,$(wildcard pyx/*.pyx))
PYX_SOURCES := $(wildcard pyx/*.pyx pyx/*.pxd pykafka_core/*.pxd) pyx/backend.py

.PHONY: help build demo check test test-all durations clients clients-cluster streams histories copies formats bad-input sink-histories simulate simulate-quorum simulate-replication record-seeds perturbed turns bench peers bench-cluster fairness bounds bench-spark fuzz torture beside copies-beside wheel settings docs picture verify guards ceilings fix clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

build: .venv/built ## compile Rust and Cython into .venv (a warm rebuild takes seconds)

demo: $(if $(filter 0,$(SPARK)),,need-spark) .venv/built ## 336,776 flights through a broker and back, through three of which two fail, then counted by Spark (SPARK=0: without Spark)
ifeq ($(SPARK),0)
	python -m examples.demo --no-spark
else
	python -m examples.demo --plots target/demo
endif

# First among a target's prerequisites: what is missing is named before anything runs.
.PHONY: need-spark need-build need-test-all need-clients need-torture need-fuzz
need-spark need-build need-test-all need-clients need-torture need-fuzz: need-%:
	@tools/need $*

# Tests with one of these markers cost more than time in their own process; pyproject.toml describes each.
COSTLY := spark or jvm or postgres or cluster or kill or wheel or interval or load or campaign
PYTEST_PARALLEL := python -m pytest -n $(or $(TEST_JOBS),auto) --dist loadgroup
RUST_TARGETS := --lib --bins --tests

check: need-build verify ## lints, types, guards, and the unit tests of what changed since CHECK_BASE (where HEAD left the main branch)
	@python -m tools.changed $(CHECK_BASE) > target/changed; cat target/changed
	@while read -r runner arguments <&3; do \
	  case $$runner in \
	    cargo) cargo test --locked -q $$arguments ;; \
	    pytest) $(PYTEST_PARALLEL) -m "not ($(COSTLY))" $$arguments || test $$? = 5 ;; \
	  esac || exit 1; \
	done 3< target/changed

test: need-build .venv/built ## the tests that need only the build, TEST_JOBS (one a core) files at a time: ten minutes on two cores
	@rm -f target/durations.json
	cargo test --locked --workspace -q
	$(PYTEST_PARALLEL) -m "not ($(COSTLY))"

# Of those that `make clients-cluster` runs.
CLUSTER_SAMPLE := tests/clients/test_transactions.py tests/clients/test_quotas.py
test-all: need-test-all test target/spark.jsa ## `test`, then every other test: Spark, JVMs, PostgreSQL, clusters, kills, wheels, campaigns (SHARE=2/3: a third of them)
	cargo test --locked --workspace -q $(RUST_TARGETS) -- --ignored
	$(PYTEST_PARALLEL) -m "$(COSTLY)" --share $(or $(SHARE),1/1)
	python -m pytest -p no:xdist --brokers 3 $(CLUSTER_SAMPLE)
	python -m tools.durations --limit 10 --again

target/spark.jsa: .venv/ready tests/support/spark/class_archive.py
	python -m tests.support.spark.class_archive

durations: ## the slowest tests of recorded runs; fails for one of over 2 s without a marker of its cost
	python -m tools.durations

CLIENT_TESTS := tests/clients/groups
clients: need-clients .venv/built target/clients/golang target/clients/kafkajs/package.json ## members of groups by eight client libraries; then writes the table of docs/guides/clients.md
	PYKAFKA_CLIENTS=all python -m pytest -p no:xdist $(CLIENT_TESTS)
	python -m tests.clients.groups.table

target/clients/golang: $(wildcard $(CLIENT_TESTS)/drivers/golang/*)
	go -C $(CLIENT_TESTS)/drivers/golang build -o $(CURDIR)/$@ .

# npm needs package.json before it starts; without it the next make installs again.
target/clients/kafkajs/package.json: $(wildcard $(CLIENT_TESTS)/drivers/kafkajs/package*.json)
	mkdir -p $(@D)
	cp $(CLIENT_TESTS)/drivers/kafkajs/package-lock.json $(@D)
	cp $(CLIENT_TESTS)/drivers/kafkajs/package.json $(@D)
	npm ci --prefix $(@D) --no-audit --no-fund || { rm $@; exit 1; }

clients-cluster: need-test-all .venv/built ## the tests of foreign clients, Spark among them, on a cluster of CLUSTER_BROKERS (3) in place of one broker
	STREAMS_KILLS=$${STREAMS_KILLS:-3} python -m pytest -p no:xdist --brokers $${CLUSTER_BROKERS:-3} tests/clients tests/idempotent/test_consumer.py \
	  tests/kernels/test_java.py tests/docs/test_delivery.py tests/spark

streams: need-test-all .venv/built ## Kafka Streams with exactly_once_v2, killed STREAMS_KILLS (10) times, and Kafka Connect without one of its workers
	STREAMS_KILLS=$${STREAMS_KILLS:-10} python -m pytest -p no:xdist --timeout 900 tests/clients/streams

histories: ## 2,000 random histories of a log with damaged files, under a model (PYKAFKA_HISTORIES sets the number)
	PYKAFKA_HISTORIES=$${PYKAFKA_HISTORIES:-2000} cargo test --locked -q -p pykafka-log --test histories -- --nocapture

copies: ## 20,000 random histories of replicas of a compacted log that are copied, wiped and killed (PYKAFKA_COPIES sets the number)
	PYKAFKA_COPIES=$${PYKAFKA_COPIES:-20000} cargo test --locked -q -p pykafka-log --test compaction copies -- --nocapture

formats: need-test-all .venv/built ## write the partitions of all message formats by Kafka 0.9 to 4.4 again, and ask Kafka about each
	PYKAFKA_FORMATS=all python -m pytest -p no:xdist tests/formats/legacy/test_corpus.py tests/formats/releases/test_releases.py

bad-input: need-test-all .venv/built ## 2,000 damaged partitions (BAD_INPUT_SEEDS sets the number) by each of our readers beside Kafka's; a table of results
	python -m tests.formats.damaged --seeds $${BAD_INPUT_SEEDS:-2000}

sink-histories: .venv/built ## histories of topics, checkpoints and ledgers under Spark's sink, SINK_HISTORIES (10,000) of each kind; then wrong rules, which they find
	SINK_HISTORIES=$${SINK_HISTORIES:-10000} python -m pytest -p no:xdist --timeout 0 -rP \
	  tests/spark/sink/test_histories.py tests/spark/sink/test_mutants.py

simulate: .venv/built ## seeded histories of the coordinators under faults, SIMULATION_SEEDS (10,000) of them
	PYTHONHASHSEED=0 python -m tests.simulation --seeds $${SIMULATION_SEEDS:-10000}

simulate-quorum: .venv/built ## seeded histories of the metadata quorum under faults, QUORUM_SEEDS (100,000) of them
	PYTHONHASHSEED=0 python -m tests.simulation.quorum --seeds $${QUORUM_SEEDS:-100000}

simulate-replication: ## seeded histories of brokers that replicate a partition under faults, REPLICATION_SEEDS (100,000) of them; then wrong rules, which they find
	REPLICATION_SEEDS=$${REPLICATION_SEEDS:-100000} cargo test --locked -q -p pykafka-broker --lib replication::simulation -- --include-ignored --nocapture 2>&1 | grep -v "^thread\|^note:"

RECORDED := tests.simulation.quorum.mutants tests.handlers.cluster.histories.mutants tests.spark.sink.histories.mutants
record-seeds: .venv/built ## search again where a recorded history does not find its wrong rule any more (RECORD=--all searches for each)
	REPLICATION_RECORD=1 cargo test --locked -q -p pykafka-broker --lib a_search_finds_each_wrong_rule -- --ignored --nocapture
	@for module in $(RECORDED); do echo "== $$module"; python -m $$module $(RECORD) || exit 1; done

PERTURBED ?= pykafka-log pykafka-broker
perturbed: ## the tests of log and broker, PERTURBED_ROUNDS (10) times, with random delays where threads hand over work
	@for round in $$(seq $${PERTURBED_ROUNDS:-10}); do \
	  cargo test --locked -q $(PERTURBED:%=-p %) --features pykafka-log/perturb -- --test-threads $$((round * 3 % 8 + 1)) || exit 1; \
	done

turns: .venv/built ## Apache Kafka and we take ten turns with one data directory (PYKAFKA_TURNS sets the number)
	PYKAFKA_TURNS=$${PYKAFKA_TURNS:-10} python -m pytest tests/formats/test_taking_turns.py -p no:xdist

bench: .venv/built-release ## time kernels, log, wire, control and start; results in .benchmarks/ (BENCH="-k crc" picks)
	python -m pytest bench -p no:xdist --benchmark-autosave $(BENCH)

peers: need-test-all .venv/built-release ## compare with Apache Kafka and librdkafka's mock (PEERS="--rounds 3 --only raw" picks)
	python -m bench.peers $(PEERS)
	$(if $(PEERS),,python -m bench.peers.compaction)

bench-cluster: need-test-all .venv/built-release ## three nodes of ours beside three of Apache Kafka's: speed, failover, memory (BENCH_CLUSTER="--rounds 1 --only SIGKILL" picks)
	python -m bench.cluster $(BENCH_CLUSTER)

fairness: need-test-all .venv/built-release ## how long clients wait beside floods, slow disks and attacks, here and on Apache Kafka (FAIRNESS="--only SIGTERM" picks)
	python -m bench.fairness $(FAIRNESS)

bounds: .venv/built-release ## peak memory of each attack, then of all at once for BOUNDS_SECONDS (120)
	python -m bench.bounds
	python -m bench.bounds --together --seconds $(or $(BOUNDS_SECONDS),120)

bench-spark: need-test-all .venv/built-release ## Spark ratios, each module of bench/spark in turn (BENCH_SPARK="connector" picks)
	@for module in $(or $(BENCH_SPARK),$(notdir $(basename $(wildcard bench/spark/*.py)))); do \
	  echo "== $$module"; python -m bench.spark.$$module; \
	done

fuzz: need-fuzz ## cargo-fuzz on every target, FUZZ_SECONDS (60) each; needs a nightly toolchain
	@for source in rust/fuzz/fuzz_targets/*.rs; do \
	  target=$$(basename $$source .rs); seeds=$$(find rust/*/tests/corpus -type d -name $$target); \
	  mkdir -p rust/fuzz/corpus/$$target; \
	  cargo +nightly fuzz run --fuzz-dir $(CURDIR)/rust/fuzz $$target rust/fuzz/corpus/$$target $$seeds \
	    -- -max_total_time=$${FUZZ_SECONDS:-60}; \
	done

torture: need-torture .venv/built ## kill -9 under load, TORTURE_ROUNDS (50) times a durability, LEDGER_ROUNDS (200) of ledgers in Python and as many in Spark; groups beside threads that hog the GIL, HOG_SECONDS (600); clusters, ours and Apache Kafka's, CLUSTER_MINUTES (20), and of both together; needs root
	python -m pytest -p no:xdist tests/faults/disks/torture_ext4.py tests/faults/cluster/torture_disks.py
	TORTURE_ROUNDS=$${TORTURE_ROUNDS:-50} python -m pytest -p no:xdist tests/faults/test_kill.py tests/faults/groups/test_group_kill.py tests/faults/transactions/test_transactions_kill.py \
	  tests/faults/test_compaction_kill.py tests/faults/transactions/test_copiers.py tests/faults/test_restarts.py tests/faults/groups/test_lives.py
	HOG_SECONDS=$${HOG_SECONDS:-600} python -m pytest -p no:xdist --timeout 0 tests/faults/groups/test_gil_hogs.py
	TORTURE_ROUNDS=$${LEDGER_ROUNDS:-200} python -m pytest -p no:xdist \
	  tests/faults/test_idempotent_crash.py tests/spark/test_crashes.py
	python -m tests.faults.cluster.run --on ours --steps 12 --minutes $${CLUSTER_MINUTES:-20}
	python -m tests.faults.cluster.run --on ours --steps 12 --minutes $${CLUSTER_MINUTES:-20} --pairs
	python -m tests.faults.cluster.run --on ours --steps 12 --minutes $${CLUSTER_MINUTES:-20} --workloads java-list
	python -m tests.faults.cluster.run --on ours --steps 12 --minutes $${CLUSTER_MINUTES:-20} --workloads java-copier
	python -m tests.faults.cluster.run --on kafka --steps 12 --minutes $${CLUSTER_MINUTES:-20}
	python -m tests.cluster.beside.run --seed $${BESIDE_SEED:-0}

copies-beside: need-test-all .venv/built ## histories of copied and compacted partitions, and moves of the internal topics, on nodes of both kinds; COPIES_BESIDE="--histories 100" picks
	python -m tests.cluster.copies.run $(COPIES_BESIDE)

beside: need-test-all .venv/built ## clusters of our nodes and Apache Kafka's under load: kill -9, leaders moved between kinds, zombies; BESIDE_SEED (0), BESIDE="--scenario voter" picks
	python -m tests.cluster.beside.run --seed $${BESIDE_SEED:-0} $(BESIDE)

# WHEEL_PROFILE=dev takes what `make build` has compiled.
wheel: need-build .venv/wheel ## a manylinux wheel for each CPython found, in dist/ (PYTHONS="python3.12" picks)
	@python tools/wheels.py $(or $(OUT),dist) $(or $(WHEEL_PROFILE),release) $(PYTHONS)

settings: .venv/built ## random changes of settings over the wire, each followed by a restart, SETTINGS_SEQUENCES (10,000) times
	SETTINGS_SEQUENCES=$${SETTINGS_SEQUENCES:-10000} python -m pytest -p no:xdist --timeout=0 tests/broker/settings/test_settings_campaign.py

docs: .venv/docs ## the documentation site, in target/site: warnings, such as links without a target, are errors
	NO_MKDOCS_2_WARNING=1 python -m mkdocs build

picture: .venv/built ## record the terminal of a tutorial, docs/assets/kill-a-broker.svg, again
	python -m pip install -q --group picture
	python -m tools.site.tutorial docs/tutorials/kill-a-broker.md target/picture
	python -m ptyreel docs/assets/kill-a-broker.tape

verify: .venv/built ## lints, types, import contracts; writes nothing
	ruff check . && ruff format --check .
	mypy
	stubtest --allowlist tools/stubtest.txt $(COMPILED)
	lint-imports
	cargo fmt --check
	cargo clippy --locked --workspace --all-targets -q -- -D warnings
	python -m tools.guards

guards: .venv/ready ## figures of the source tree beside their ceilings; GUARDS="--list prose_comments" lists each place
	python -m tools.guards $(GUARDS)

ceilings: .venv/ready ## store figures that have become lower as the new ceilings
	python -m tools.guards --lower

fix: .venv/ready ## what `verify` complains about and a tool can mend
	ruff check --fix . ; ruff format .
	cargo fmt

clean: ## remove what was built
	rm -rf .venv target build pykafka_core/*.so

# Python's packages are installed while cargo compiles, and cargo shows its progress, which pip would hide.
.venv/ready: pyproject.toml tools/need
	@tools/need build
	$(PYTHON) -m venv .venv
	cargo build --locked -p pykafka-bindings & cargo=$$!; trap "kill $$cargo 2>/dev/null || true" EXIT; \
	  .venv/bin/python -m pip install -q --upgrade 'pip>=25.1'; \
	  .venv/bin/python -m pip install -q --group dev; \
	  wait $$cargo
	touch $@

# The site needs no build, and a wheel is compiled with its own profile.
.venv/docs .venv/wheel: .venv/%: pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/python -m pip install -q --upgrade 'pip>=25.1'
	.venv/bin/python -m pip install -q --group $*
	touch $@

.venv/built: .venv/ready $(RUST_SOURCES) $(PYX_SOURCES)
	cargo build --locked -p pykafka-bindings
	.venv/bin/python -m pip install -q --no-build-isolation -e . --config-settings=build-args="--profile dev --locked"
	touch $@

# The wheel's own profile, in place of the one that tests use; the next change builds the latter again.
.venv/built-release: .venv/ready .venv/built
	cargo build --release --locked -p pykafka-bindings
	.venv/bin/python -m pip install -q --no-build-isolation -e . --config-settings=build-args="--profile release --locked"
	touch $@
