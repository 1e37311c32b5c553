# `make help` lists the targets. Everything works in a fresh clone; missing tools are installed
# (as root, with apt) or named.

# How the demo's room elects: raft, gossip or seeded.
STRATEGY ?= raft
# Where `make install` puts the library (LIBRARY, else that of `make build`); DESTDIR goes in front, for those who build packages.
PREFIX ?= /usr/local
LIBDIR ?= lib
INSTALL = scripts/install.py --prefix '$(PREFIX)' --libdir '$(LIBDIR)' --destdir '$(DESTDIR)' $(if $(LIBRARY),--library '$(LIBRARY)')

.PHONY: help build install uninstall dist docs server godot demo demo-internet check test test-rooms test-all relay relay-load relay-soak test-dist test-windows asan valgrind soak fuzz publish-check release-notes deny lint sim sim-long lab lab-long mutants figures header clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

build: ## the library, in target/release
	cargo build --release

install: $(if $(LIBRARY),,build) ## for C and C++: headers, library, CMake and pkg-config files, into PREFIX=/usr/local (LIBDIR, DESTDIR)
	@$(INSTALL)

uninstall: ## removes what `make install` put there (the same PREFIX, LIBDIR, DESTDIR)
	@$(INSTALL) --uninstall

dist: tools ## what is shipped: the library for Windows and Linux, and all packages, in target/dist (a quarter of an hour)
	@scripts/dist.py

docs: build ## the site of the documents and the reference, checked, in target/site/html: open index.html
	@scripts/install-tools.sh --only site
	@scripts/site.py

relay: ## mmn-relay, a static program for this machine, with its service and its container, in target/relay (RELAY=linux-arm64: for another)
	@scripts/dist.py --relay $(RELAY)

relay-load: ## what a relay costs: 64 rooms of 4 in play, beside direct links in the same run (RELAY_SECONDS=20, RELAY_ROOMS=64, RELAY_HZ=20); then more and more of 512 rooms, and what many players need (RELAY_PROCESSES=2: at two relays)
	@scripts/isolated.py cargo test --release -p mmn_relay --test relay load:: -- --ignored --nocapture --test-threads=1

relay-soak: ## hostile members at a relay for ten minutes (RELAY_SOAK_SECONDS=600), then with AddressSanitizer; its memory must not grow
	@scripts/relay_soak.sh

test-dist: tools ## what `make dist` has built: hosts for x64 and ARM in one room, the relays and their container, the packages installed into empty projects
	@scripts/install-tools.sh coreclr arm64 cmake pkg-config buildah
	@tests/dist/linux.py
	@tests/dist/container.py
	@tests/dist/packages.sh

test-windows: tools build ## hosts in C, C++ and C# for Windows, under Wine, in a room with a process of Linux
	@scripts/install-tools.sh coreclr mingw wine windows-coreclr cmake
	@scripts/dist.py win-x64
	@tests/dist/windows.py

server: ## the library with the etcd strategy, for dedicated servers, in target/server
	@scripts/install-tools.sh --only protoc
	cargo build --release --features etcd --target-dir target/server

godot: ## the example for Godot 4, in target/godot: its lints, its extension, and its tests without an engine
	@scripts/godot.sh

demo: tools build ## one room of four hosts in four languages; the leader is killed (STRATEGY=gossip, seeded)
	@python3 scripts/demo.py --strategy $(STRATEGY)

demo-internet: tools build ## two players in homes behind routers meet by a code, over a relay; then it is killed; needs root
	@scripts/install-tools.sh --only nft conntrack
	cargo build --release -p mmn_relay
	@scripts/demo_internet.py

check: ## a first answer: formatting, lints, the core, the library, rooms over loopback, one host in C; installs nothing
	@scripts/check.sh

test: ## what CI runs: every outcome, with generous time limits
	@scripts/install-tools.sh coreclr chromium protoc etcd etcdctl openssl cmake pkg-config python-packages nft conntrack miniupnpd turnserver luajit node java
	@scripts/test.sh

test-rooms: ## the library, and rooms over loopback: what also runs on Windows and macOS
	cargo build --release
	cargo test --test e2e

test-all: test docs godot sim dist test-dist test-windows ## the same, the site of the documents, the example for Godot, what is shipped, 20,000 simulated rooms of each election, and half an hour of etcd: 20 pauses, 200 rounds of kills, pauses and cuts
	scripts/isolated.py cargo nextest run --profile long --features etcd --test etcd --run-ignored only \
		-E 'not test(a_process_of_the_tests)'

asan: tools ## the C hosts and the library under AddressSanitizer and LeakSanitizer
	@scripts/asan.sh

valgrind: ## the C hosts and the library under valgrind
	@scripts/install-tools.sh valgrind
	@scripts/valgrind.sh

soak: tools build ## 1,000 shutdowns in flight, then 15 minutes (SOAK_SECONDS=900) of joins, crashes and pauses
	@scripts/soak.sh

fuzz: ## every decoder and sequences of calls under libFuzzer, 30 s each (FUZZ_SECONDS, FUZZ_TARGETS)
	@scripts/fuzz.sh

release-notes: ## the changes of this version, as the notes of its release
	@scripts/release_notes.py

publish-check: ## what cargo would publish, crate by crate: lists the files and uploads nothing (make dist has the other packages)
	@scripts/release_notes.py >/dev/null
	cargo publish --workspace --dry-run --no-verify --allow-dirty

deny: ## licences, sources and known faults of the dependencies (deny.toml)
	@scripts/deny.sh

lint: ## formatting and lints, warnings as errors
	@scripts/install-tools.sh --only protoc
	cargo fmt --all --check
	scripts/import_circles.py
	scripts/words.py
	scripts/documents.py
	cargo clippy --workspace --all-targets --features etcd,hosts -- -D warnings
	cargo clippy -- -D warnings
	cargo clippy --lib --no-default-features -- -D warnings

sim: ## 20,000 rooms of each election under faults in virtual time, a hundred nodes the largest, 2,000 of each with a state, and larger bounds of its explorer
	MMN_SIM_SEEDS=20000 cargo test --release -p room_simulator simulations -- --nocapture
	MMN_SIM_SEEDS=2000 cargo test --release -p state_simulator
	cargo test --release -p state_simulator larger_scopes -- --ignored --nocapture

sim-long: ## the same from a random seed on, for half an hour (MMN_SIM_SECONDS=1800)
	MMN_SIM_SECONDS=$${MMN_SIM_SECONDS:-1800} cargo test --release -p room_simulator simulations -- --nocapture

lab: build ## rooms over lines with delay, loss and limits, and across NATs, between network namespaces; needs root (docs/lab.md; LAB="names of tests")
	@scripts/install-tools.sh --only nft conntrack miniupnpd turnserver
	cargo build --release -p network_lab
	cargo build --release -p mmn_relay
	@tests/lab/run.py $(LAB)

lab-long: build ## the same, every disturbance 20 times, half an hour of loss (LAB_TIMES=20, LAB_MINUTES=30)
	@scripts/install-tools.sh --only nft conntrack miniupnpd turnserver
	cargo build --release -p network_lab
	cargo build --release -p mmn_relay
	@tests/lab/run.py --long $(LAB)

mutants: ## puts bugs into the election core, one at a time, and shows what notices them (docs/mutants.md; MUTANTS="--shard 0/4")
	@scripts/mutants.py $(MUTANTS)

figures: tools build ## speed and failover figures, printed; those of the elections go into docs/figures.md
	@scripts/figures.sh

header: ## writes the C header and the bindings' tables from the source (docs/abi.md)
	MMN_UPDATE_HEADER=1 cargo build

clean: ## removes everything that was built
	cargo clean

.PHONY: tools
tools:
	@scripts/install-tools.sh
