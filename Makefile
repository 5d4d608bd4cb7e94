# The commands of the README. Each does all its own set-up.
#   make run         build Quipu quickly and start it on ./quipu-data
#   make test        everything that CI runs
#   make bench       Quipu and its peers side by side, about 15 minutes
#   make bench-full  the same with the numbers of series of record, hours
#   make fuzz        looks for inputs that break a decoder, a minute for each, and keeps what it learns
#   make test-redis  Redis' own suite of tests against the release binary
#   make test-redis-py  redis-py's own tests against a debug binary, minutes
#   make test-redis-load  what clients who mean harm cost, minutes, some 4 GB of memory
#   make test-replicas  random commands on a primary while its replica lags, stops and restarts, half an hour
#   make test-differential CAMPAIGN=promql  compares Quipu with a real peer on generated cases
#   make test-sql    Quipu and PostgreSQL asked, and their tables changed, in the same way, minutes
#   make test-flux ENGINE=PATH  Quipu and InfluxData's own engine of Flux asked the same, minutes
#   make test-moving-in  a VictoriaMetrics, a Prometheus and an InfluxDB moved to Quipu under load, minutes
#   make test-kill      kill -9 under load through every protocol, 1,000 rounds, some 20 minutes
#   make test-columns   a million random columns with extreme values are encoded and decoded, minutes
#   make test-random-writes  random writes through every protocol beside a model, half a minute
#   make test-downgrade  what earlier versions do with a store of this one; builds them, half an hour
#   make fmt         format all code

.PHONY: run test test-differential test-columns test-kill test-random-writes test-redis test-redis-py test-redis-load test-replicas test-sql test-flux test-moving-in test-downgrade bench bench-full fuzz fmt tools

tools:
	@command -v cc >/dev/null || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq build-essential)

run: tools
	cargo build --profile quick --package quipu --features jemalloc
	./target/quick/quipu serve $(ARGS)

test: tools
	cargo xtask ci

# ARGS="--words unit/type/list" runs one unit and tells what failed tests said.
test-redis: tools
	cargo xtask test-redis $(ARGS)

# ARGS="test_lock.py test_pubsub.py" runs some of its files.
test-redis-py: tools
	cargo build --package quipu
	python3 tests/clients/redis_py_suite.py target/debug/quipu $(ARGS)

# ARGS="keys --keys 1000000" does one case, smaller.
test-redis-load: tools
	cargo build --release --package quipu --no-default-features --features jemalloc
	python3 tests/clients/redis_load.py target/release/quipu $(ARGS)

# SEED=2 draws other commands.
test-replicas: tools
	REPLICA_HISTORIES=1000 cargo test --package kv --test all replica_model
	cargo build --package quipu --no-default-features --features jemalloc
	QUIPU_BINARY=$(CURDIR)/target/debug/quipu REPLICA_ROUNDS=1000 cargo test --package e2e --test all redis_replica_model

# ENGINE is built as tests/clients/go-flux/main.go says; ARGS="--seed 2 --count 1000" asks other chains.
test-flux: tools
	cargo build --package quipu --features jemalloc
	python3 tests/clients/flux_differential.py target/debug/quipu $(ENGINE) $(ARGS)

# ARGS="--hosts 100 --kinds prometheus" moves more, of one.
test-moving-in: tools
	cargo build --package quipu --features jemalloc
	cargo xtask setup
	python3 tests/clients/moving_in.py target/debug/quipu $(ARGS)

test-columns: tools
	COLUMN_ROUNDS=250000 cargo test --release --package codec --test all -- --nocapture mixtures

# ARGS="--rounds 100 --seed 2" runs fewer, with other times.
test-kill: tools
	cargo build --package quipu --features jemalloc
	cargo xtask setup
	target/test-python/bin/python tests/clients/kill_rounds.py target/debug/quipu $(ARGS)

# ARGS="--writes 20000 --seed 2" writes fewer, and others.
test-random-writes: tools
	cargo build --package quipu --features jemalloc
	cargo xtask setup
	target/test-python/bin/python tests/clients/random_writes.py target/debug/quipu $(ARGS)

# ARGS="7d469c45" asks that commit alone.
test-downgrade: tools
	cargo build --package quipu --features jemalloc
	cargo xtask setup
	python3 tests/golden/downgrade.py target/debug/quipu $(ARGS)

# ARGS="--seed 2 --count 100000 --peer PATH" runs other cases, more of them, beside another program;
# `python3 tests/differential --help` lists the campaigns.
test-differential: tools
	cargo build --package quipu --features jemalloc,sql,s3
	cargo xtask setup
	target/test-python/bin/python tests/differential $(CAMPAIGN) target/debug/quipu $(ARGS)

test-sql: tools
	cargo build --package quipu --features jemalloc,sql,s3
	cargo xtask setup
	target/test-python/bin/python tests/clients/postgres_tables_differential.py target/debug/quipu $(ARGS)
	target/test-python/bin/python tests/clients/postgres_hypertables_differential.py target/debug/quipu $(ARGS)
	target/test-python/bin/python tests/clients/postgres_differential.py target/debug/quipu $(ARGS)

# ARGS="--resume" goes on after an interruption; ARGS="--victoria-metrics PATH" takes a newer peer.
bench: tools
	cargo xtask bench --profile small $(ARGS)

bench-full: tools
	cargo xtask bench --profile full $(ARGS)

# ARGS="--seconds 600 store-part" takes longer for the targets that are named. For every night too.
fuzz: tools
	@command -v c++ >/dev/null || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq build-essential)
	cargo xtask fuzz $(ARGS)

fmt:
	cargo fmt --all
