# The commands of the README. Each does all its own set-up.
#   make run    build the release binary and start it on ./quipu-data
#   make test   everything that CI runs
#   make bench  side-by-side benchmarks, about 15 minutes
#   make fmt    format all code

.PHONY: run test bench fmt tools

tools:
	@command -v cc >/dev/null || (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq build-essential)

run: tools
	cargo build --release --package server --features jemalloc
	./target/release/quipu serve $(ARGS)

test: tools
	cargo xtask ci

bench: tools
	cargo xtask bench $(ARGS)

fmt:
	cargo fmt --all
