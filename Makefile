# One command for each thing a contributor does. Every target sets up what it needs in .venv (benchmarks: in
# .venv-bench); stamps remember it, so a second run needs no network.

PYTHON ?= python3
VENV := .venv
BENCH_VENV := .venv-bench
BIN := $(VENV)/bin
BENCH_BIN := $(BENCH_VENV)/bin
SOURCES := $(shell find src -type f \( -name '*.py' -o -name '*.toml' -o -name '*.json' -o -name py.typed \) 2>/dev/null)

DEMO_SCENARIO ?= mixed-1000
# Empty: all of them, each with idle nodes that sleep and without.
DEMO_POLICIES ?=
DEMO_REPORT ?= demo-report
DEMO = $(BIN)/wattloom demo --scenario $(DEMO_SCENARIO) $(if $(DEMO_POLICIES),--policies $(DEMO_POLICIES)) --report $(DEMO_REPORT)

PYTEST_ARGS ?= -n 3 --dist worksteal
# What needs neither Go nor programs of the distribution, and is quick: for contributors, while they work.
QUICK_TESTS ?= tests/cluster tests/machines tests/docs/test_nav.py tests/docs/test_reference.py tests/engine tests/policies tests/prediction \
	tests/workload tests/cli/test_errors.py tests/cli/test_tables.py tests/test_settings.py
# The same wheel and the short tests on every one of these that is installed (by name, or by pyenv).
OTHER_PYTHONS ?= 3.12 3.13
OTHER_TESTS ?= tests/engine tests/policies tests/simulation tests/local/conformance
# Peers the benchmarks compare with: never in the product's environment.
BENCH_PEERS := simpy numpy psutil
# Heavy ones, for bench-dispatch and bench-idle only.
BENCH_EXECUTORS := loky ray distributed parsl
# The extra kubernetes, for bench-kubernetes only.
BENCH_KUBERNETES := httptools pyyaml uvloop
# A folder of data for benchmarks that can use one: make bench BENCH_DATA=/path/to/data
BENCH_DATA ?=
BENCH_ARGS ?=
# Benchmarks that use what the tests are made with (tests/beds) find it from here.
WITH_BEDS := PYTHONPATH="$(CURDIR)"
BENCH_OPTIONS = $(if $(BENCH_DATA),--data "$(BENCH_DATA)") $(BENCH_ARGS)
# Programs that tests start for real, as Debian calls them. Without one its tests are skipped, and say so.
TEST_PACKAGES := stress-ng prometheus pcp snmp snmpd ipmitool openipmi libopenipmi-dev openssl gcc libc6-dev \
	qemu-system-x86 busybox-static nodejs openjdk-17-jdk-headless gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	qemu-user-static clang lld wasi-libc libclang-rt-14-dev-wasm32
TEST_PROGRAMS := stress-ng prometheus snmpget /usr/sbin/snmpd ipmitool ipmi_sim openssl gcc qemu-system-x86_64 busybox \
	/usr/lib/pcp/bin/pmcd node javac aarch64-linux-gnu-gcc qemu-aarch64-static clang wasm-ld
GUEST := .tools/guest
# What tests of Kubernetes start, built with Go once and kept in the user's cache; PROGRAM=PACKAGE for one real node.
KUBERNETES_PROGRAMS := etcd kube-apiserver kube-scheduler kwok kube-controller-manager kubelet
KUBERNETES_NODE := containerd=containerd runc=runc busybox=busybox-static /usr/lib/cni/bridge=containernetworking-plugins \
	ip=iproute2 openssl=openssl
KUBERNETES = $(BIN)/python -m tests.beds.kubernetes
# What functions of the suite are built and run with, as PROGRAM=PACKAGE.
WASM_BUILTINS := $(firstword $(wildcard /usr/lib/llvm-*/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a) wasm32-builtins)
SUITE_TOOLS := node=nodejs npm=npm java=openjdk-17-jre-headless javac=openjdk-17-jdk-headless mvn=maven g++=g++ clang=clang \
	wasm-ld=lld /usr/include/wasm32-wasi/stdio.h=wasi-libc $(WASM_BUILTINS)=libclang-rt-dev-wasm32 \
	aarch64-linux-gnu-g++=g++-aarch64-linux-gnu qemu-aarch64-static=qemu-user-static
SIMGRID_HEADER := /usr/include/simgrid/s4u.hpp

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_QUIET := 1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-quick test-pythons wheels tools guest lint check-compiled bench bench-decisions bench-rules bench-simulation simgrid docs compiled wheel clean

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp-report ## run functions here, compare policies on a ready scenario, write demo-report/
	$(DEMO)

test: $(VENV)/.stamp-dev tools guest kubernetes-binaries kubernetes-node-tools suite ## run the tests; those that fail, once more alone
	$(BIN)/pytest $(PYTEST_ARGS) || sh .ci/once-more $$? $(BIN)/pytest

test-quick: $(VENV)/.stamp-dev ## run the tests that need nothing but Python, without the slow ones (under 3 minutes)
	$(BIN)/pytest $(PYTEST_ARGS) -m "not slow" $(wildcard $(QUICK_TESTS))

# Each in an environment of its own, .venv-3.12 and so on. One that is not installed is named, and is no failure.
test-pythons: ## run the short tests on each other Python that is installed (3.12, 3.13)
	@for version in $(OTHER_PYTHONS); do \
		python=$$(sh .ci/python $$version) || { echo "*** PYTHON $$version IS MISSING: its tests are skipped." >&2; continue; }; \
		echo "Python $$version: $$python"; \
		[ -x .venv-$$version/bin/python ] || "$$python" -m venv .venv-$$version || exit 1; \
		.venv-$$version/bin/pip install -e '.[test,report]' || exit 1; \
		.venv-$$version/bin/pytest $(PYTEST_ARGS) -m "not slow" $(wildcard $(OTHER_TESTS)) || \
			sh .ci/once-more $$? .venv-$$version/bin/pytest $(wildcard $(OTHER_TESTS)) || exit 1; \
	done

lint: $(VENV)/.stamp-dev ## check style, format, types and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The variable quietens the theme's notice that its upkeep ends in May 2027 (its successor reads the same mkdocs.yml).
docs: $(VENV)/.stamp-docs ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

.PHONY: fuzz
FUZZ_SECONDS ?= 120
FUZZ_SEED ?= $(shell date +%s)
fuzz: $(VENV)/.stamp-dev ## call every command with files and options that nobody means, for FUZZ_SECONDS (120)
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED)

wheel: $(VENV)/.stamp-dev ## build the pure-Python wheel and the source archive into dist/
	rm -rf build
	$(BIN)/python -m build --outdir dist .

check-compiled: $(VENV)/.stamp-dev $(BENCH_VENV)/.stamp-wattloom ## compare results of the compiled and the pure wheel
	@mkdir -p build; for scenario in heats-bursts isa-mixed; do for policy in least-joules marginal-energy exec; do \
		$(BIN)/wattloom simulate $$scenario --policy $$policy --json > build/pure.json && \
		$(BENCH_BIN)/wattloom simulate $$scenario --policy $$policy --json > build/compiled.json && \
		cmp build/pure.json build/compiled.json && echo "$$scenario, $$policy: identical" || exit 1; done; done

compiled: dist/.stamp-compiled ## build the mypyc-compiled wheel into dist/

# dist/.stamp-compiled removes compiled wheels of before, so the others come after it.
wheels: dist/.stamp-compiled ## build the compiled wheel for each Python that is installed (3.11, 3.12, 3.13) into dist/
	@for version in $(OTHER_PYTHONS); do \
		python=$$(sh .ci/python $$version) || { echo "*** PYTHON $$version IS MISSING: no wheel for it." >&2; continue; }; \
		echo "compiling for Python $$version: $$python"; rm -rf build; \
		[ -x .venv-$$version/bin/python ] || "$$python" -m venv .venv-$$version || exit 1; \
		.venv-$$version/bin/pip install -e '.[dev,report]' || exit 1; \
		WATTLOOM_COMPILE=1 .venv-$$version/bin/pip wheel --no-build-isolation --no-deps --wheel-dir dist . || exit 1; \
	done; ls dist/wattloom-*-cp*.whl

bench: bench-decisions bench-rules bench-simulation bench-dispatch bench-idle bench-parity bench-attribution bench-function-profiles bench-chaos bench-monitoring bench-disaggregation bench-plan ## run all benchmarks

bench-decisions: $(BENCH_VENV)/.stamp-wattloom ## decisions per second
	$(BENCH_BIN)/python benchmarks/decisions.py $(BENCH_OPTIONS)

bench-rules: $(BENCH_VENV)/.stamp-wattloom ## decisions among thousands of rules between tasks
	$(BENCH_BIN)/python benchmarks/placement_rules.py $(BENCH_OPTIONS)

bench-simulation: $(BENCH_VENV)/.stamp-wattloom simgrid ## simulated tasks per second, beside SimPy and SimGrid
	@if [ -e $(SIMGRID_HEADER) ] && command -v g++ >/dev/null; then \
		set -x; $(BENCH_BIN)/python benchmarks/simulation.py $(BENCH_OPTIONS); \
	else \
		set -x; $(BENCH_BIN)/python benchmarks/simulation.py --without-simgrid $(BENCH_OPTIONS); \
	fi

.PHONY: bench-dispatch bench-idle bench-chaos bench-peers
bench-dispatch: $(BENCH_VENV)/.stamp-wattloom bench-peers ## calls per second and round trips, beside Ray, Dask and others
	$(BENCH_BIN)/python benchmarks/dispatch.py $(BENCH_OPTIONS)

bench-idle: $(BENCH_VENV)/.stamp-wattloom bench-peers ## cost of an idle executor and time to the first result
	$(BENCH_BIN)/python benchmarks/idle.py $(BENCH_OPTIONS)

bench-chaos: $(BENCH_VENV)/.stamp-wattloom ## kill -9 at random moments, a few hundred times: nothing lost, nothing doubled
	$(BENCH_BIN)/python benchmarks/chaos.py $(BENCH_OPTIONS)

.PHONY: bench-attribution
bench-attribution: $(BENCH_VENV)/.stamp-wattloom ## how true the joules of single calls are, beside the rules of others
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/attribution.py $(BENCH_OPTIONS)

.PHONY: bench-function-profiles
bench-function-profiles: $(BENCH_VENV)/.stamp-wattloom ## how true E and W of functions are, where the truth is known
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/function_profiles.py $(BENCH_OPTIONS)

.PHONY: bench-parity
bench-parity: $(BENCH_VENV)/.stamp-wattloom ## what the simulator predicts, beside what happens on this machine
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/parity.py $(BENCH_OPTIONS)

.PHONY: bench-monitoring
bench-monitoring: $(BENCH_VENV)/.stamp-wattloom ## what a look at 100 to 4,000 processes costs, beside psutil
	$(BENCH_BIN)/python benchmarks/monitoring.py $(BENCH_OPTIONS)

.PHONY: bench-disaggregation
bench-disaggregation: $(BENCH_VENV)/.stamp-wattloom ## errors of joules per function out of whole-machine power
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/disaggregation.py $(BENCH_OPTIONS)

# MiniZinc and Gecode are programs of the distribution: without them their rows say so.
.PHONY: bench-plan
bench-plan: $(BENCH_VENV)/.stamp-wattloom ## plans: gap and time, beside Gecode, CP-SAT and HiGHS
	@$(BENCH_BIN)/python -c 'import ortools, scipy' 2>/dev/null || $(BENCH_BIN)/pip install ortools scipy
	@command -v minizinc >/dev/null && command -v fzn-gecode >/dev/null || \
		{ [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq \
			&& SYSTEMD_OFFLINE=1 DEBIAN_FRONTEND=noninteractive \
			apt-get install -y -qq --no-install-recommends minizinc flatzinc libgecode-dev >/dev/null 2>&1; } || \
		echo "*** GECODE ROWS SKIPPED: install minizinc, flatzinc and libgecode-dev (Debian) and run again." >&2
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/plan.py $(BENCH_OPTIONS)

.PHONY: bench-machine-curves bench-power-model
bench-machine-curves: $(BENCH_VENV)/.stamp-wattloom ## power curves of machines nobody measured, beside three other ways
	@$(BENCH_BIN)/python -c 'import sklearn' 2>/dev/null || $(BENCH_BIN)/pip install scikit-learn scipy
	$(BENCH_BIN)/python benchmarks/machine_curves.py $(BENCH_OPTIONS)

bench-power-model: $(BENCH_VENV)/.stamp-wattloom ## power from CPU time on a real node, beside Kepler's models
	$(BENCH_BIN)/python benchmarks/power_model.py $(BENCH_OPTIONS)

# A peer that cannot be installed does not stop the others: the benchmark names it as missing.
bench-peers: | $(BENCH_BIN)/python
	@if [ "$$(cat $(BENCH_VENV)/.stamp-executors 2>/dev/null)" = "$(BENCH_EXECUTORS)" ]; then exit 0; fi; \
	failed=; for peer in $(BENCH_EXECUTORS); do \
		echo "installing $$peer into $(BENCH_VENV)"; $(BENCH_BIN)/pip install $$peer || failed="$$failed $$peer"; done; \
	if [ -n "$$failed" ]; then echo "*** NOT INSTALLED:$$failed; the benchmark goes on without" >&2; \
	else echo "$(BENCH_EXECUTORS)" > $(BENCH_VENV)/.stamp-executors; fi

# The first time it builds Kubernetes with Go; without Go it says how to get it.
.PHONY: bench-kubernetes
bench-kubernetes: $(BENCH_VENV)/.stamp-wattloom $(BENCH_VENV)/.stamp-kubernetes ## pods bound per second, beside kube-scheduler
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/kube_scheduling.py $(BENCH_OPTIONS)

bench-vms: $(BENCH_VENV)/.stamp-wattloom tools guest ## how late and how right a virtual machine learns its joules
	$(WITH_BEDS) $(BENCH_BIN)/python benchmarks/vm_shares.py --kernel $(GUEST) $(BENCH_ARGS)

# SYSTEMD_OFFLINE: in a container some packages fail to be configured because systemd does not run.
tools: ## install the programs that tests start for real (as root on Debian; elsewhere says what is missing)
	@missing=; for program in $(TEST_PROGRAMS); do command -v $$program >/dev/null || missing="$$missing $$program"; done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing $(TEST_PACKAGES) with apt-get"; \
		export SYSTEMD_OFFLINE=1 DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends $(TEST_PACKAGES) >/dev/null 2>&1 || true; \
	fi; \
	for program in $(TEST_PROGRAMS); do command -v $$program >/dev/null || { \
		echo "*** $$program IS MISSING: its tests will be skipped." >&2; \
		echo "*** Install it (Debian: apt-get install $(TEST_PACKAGES))." >&2; }; done

# A kernel for the virtual machine that tests boot: unpacked, not installed.
guest: ## get a kernel for the virtual machine of the tests
	@if ls $(GUEST)/boot/vmlinuz-* >/dev/null 2>&1; then exit 0; fi; \
	if command -v apt-get >/dev/null && command -v dpkg >/dev/null && [ "$$(uname -m)" = x86_64 ]; then \
		echo "getting a kernel for the guest of the tests"; mkdir -p $(GUEST); \
		package=$$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1); \
		[ -n "$$package" ] && (cd $(GUEST) && apt-get download -qq "$$package" 2>/dev/null \
			&& dpkg -x linux-image-*.deb . && rm -f linux-image-*.deb); \
	fi; \
	ls $(GUEST)/boot/vmlinuz-* >/dev/null 2>&1 || echo "*** NO KERNEL FOR A GUEST: the test with a virtual machine is skipped." >&2

.PHONY: kubernetes kubernetes-node kubernetes-down kubernetes-binaries kubernetes-node-tools
kubernetes: $(VENV)/.stamp-dev ## start a real Kubernetes here: API server, scheduler, fake nodes (the first time builds it)
	@$(KUBERNETES) up

kubernetes-node: $(VENV)/.stamp-dev kubernetes-node-tools ## add one real node to it: kubelet and containerd (as root)
	@$(KUBERNETES) node

kubernetes-down: $(VENV)/.stamp-dev ## end the Kubernetes of `make kubernetes`
	@$(KUBERNETES) down

.PHONY: differential
DIFFERENTIAL_CASES ?= 2000
differential: $(VENV)/.stamp-dev kubernetes-binaries ## compare our filters with kube-scheduler's on 2,000 random pods
	WATTLOOM_DIFFERENTIAL_CASES=$(DIFFERENTIAL_CASES) $(BIN)/pytest -n 0 -s tests/kubernetes/test_differential.py

# Without Go the tests of Kubernetes are skipped; a build that fails with Go is an error.
kubernetes-binaries: $(VENV)/.stamp-dev ## build Kubernetes' programs for the tests, once (10 minutes cold)
	@$(KUBERNETES) binaries $(KUBERNETES_PROGRAMS) >&2 || { code=$$?; [ $$code = 3 ] || exit $$code; \
		echo "*** KUBERNETES IS MISSING: its tests will be skipped." >&2; }

# Only what is missing, and nothing in its place: containerd of another maker stays.
kubernetes-node-tools:
	@missing=; for pair in $(KUBERNETES_NODE); do command -v $${pair%%=*} >/dev/null || missing="$$missing $${pair#*=}"; done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing$$missing with apt-get"; \
		export SYSTEMD_OFFLINE=1 DEBIAN_FRONTEND=noninteractive; \
		apt-get update -qq && apt-get install -y -qq --no-remove --no-install-recommends $$missing >/dev/null 2>&1 || true; \
	fi; \
	for pair in $(KUBERNETES_NODE); do command -v $${pair%%=*} >/dev/null || { \
		echo "*** $${pair%%=*} IS MISSING: no real node of Kubernetes, its test will be skipped." >&2; \
		echo "*** Install it (Debian: apt-get install $${pair#*=})." >&2; }; done

# Only what is missing, each by itself: a node that is not Debian's brings its own npm, which apt would not let in beside it.
.PHONY: suite suite-tools
suite-tools:
	@missing=; for pair in $(SUITE_TOOLS); do \
		[ -e "$${pair%%=*}" ] || command -v $${pair%%=*} >/dev/null || missing="$$missing $${pair#*=}"; done; \
	[ -z "$$missing" ] && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing$$missing with apt-get"; \
		export SYSTEMD_OFFLINE=1 DEBIAN_FRONTEND=noninteractive; apt-get update -qq || true; \
		for package in $$missing; do \
			apt-get install -y -qq --no-remove --no-install-recommends $$package >/dev/null 2>&1 || true; done; \
	fi; \
	for pair in $(SUITE_TOOLS); do [ -e "$${pair%%=*}" ] || command -v $${pair%%=*} >/dev/null || { \
		echo "*** $${pair%%=*} IS MISSING: tests of functions that need it will be skipped." >&2; \
		echo "*** Install it (Debian: apt-get install $${pair#*=})." >&2; }; done

suite: $(VENV)/.stamp-dev suite-tools ## install what the 22 functions of `wattloom workload` need, into your cache
	@$(BIN)/wattloom workload install || echo "*** NOT ALL OF THE SUITE IS INSTALLED: tests of the rest will be skipped." >&2

# SimGrid is a C++ library from the distribution. Without it the benchmark still runs, and says what is missing.
simgrid:
	@if [ -e $(SIMGRID_HEADER) ] && command -v g++ >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "installing libsimgrid-dev and g++ with apt-get"; \
		apt-get install -y -qq libsimgrid-dev g++ >/dev/null 2>&1 \
		|| { apt-get update -qq && apt-get install -y -qq libsimgrid-dev g++ >/dev/null; } || true; \
	fi; \
	if ! [ -e $(SIMGRID_HEADER) ] || ! command -v g++ >/dev/null; then \
		echo "*** SIMGRID ROWS SKIPPED: SimGrid's headers or g++ are missing." >&2; \
		echo "*** Install them (Debian: apt-get install libsimgrid-dev g++) and run again." >&2; \
	fi

clean: ## remove what was built; the environments stay
	rm -rf build dist site $(DEMO_REPORT) src/*.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Environments -----------------------------------------------------------------------------------------------

define make_venv
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "Wattloom needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 | head -n 1)." >&2; \
		echo "Name another one: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@$(PYTHON) -m venv $(1) || { \
		echo "Could not make $(1): '$(PYTHON) -m venv' failed (Debian: install python3-venv)." >&2; \
		rm -rf $(1); exit 1; }
endef

$(BIN)/python:
	$(call make_venv,$(VENV))

$(BENCH_BIN)/python:
	$(call make_venv,$(BENCH_VENV))

# Editable installs: pyproject.toml and setup.py decide when they are stale, the sources do not.
$(VENV)/.stamp-report: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/pip install -e '.[report]'
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/pip install -e '.[dev,report]'
	@touch $@ $(VENV)/.stamp-report

$(VENV)/.stamp-docs: pyproject.toml setup.py | $(BIN)/python
	$(BIN)/pip install -e '.[docs]'
	@touch $@

dist/.stamp-compiled: $(SOURCES) pyproject.toml setup.py | $(VENV)/.stamp-dev
	@command -v cc >/dev/null || { \
		echo "A compiled wheel needs a C compiler and Python's headers (Debian: gcc python3-dev)." >&2; exit 1; }
	rm -rf build dist/wattloom-*-cp*.whl
	WATTLOOM_COMPILE=1 $(BIN)/pip wheel --no-build-isolation --no-deps --wheel-dir dist .
	@touch $@

$(BENCH_VENV)/.stamp-peers: | $(BENCH_BIN)/python
	$(BENCH_BIN)/pip install $(BENCH_PEERS)
	@touch $@

$(BENCH_VENV)/.stamp-kubernetes: | $(BENCH_BIN)/python
	$(BENCH_BIN)/pip install $(BENCH_KUBERNETES)
	@touch $@

# Without a C compiler the benchmarks measure the pure wheel, and say so in their tables.
$(BENCH_VENV)/.stamp-wattloom: $(SOURCES) pyproject.toml setup.py $(BENCH_VENV)/.stamp-peers
	@if command -v cc >/dev/null; then $(MAKE) --no-print-directory compiled; else $(MAKE) --no-print-directory wheel; fi
	$(BENCH_BIN)/pip uninstall -y wattloom 2>/dev/null
	$(BENCH_BIN)/pip install $$(ls -t dist/wattloom-*.whl | head -n 1)
	@touch $@
