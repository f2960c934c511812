# A thin front for CMake and Ninja: every target configures a build directory and hands over to it.
#   WERROR=OFF   with a compiler other than gcc 12 or clang 14, whose warnings are news to us
#   JOBS=N       processes at a time
WERROR ?= ON
JOBS ?= $(shell nproc)
SECONDS_EACH := $(or $(SECONDS),30)

configure = cmake -S . -G Ninja -DCMAKE_COMPILE_WARNING_AS_ERROR=$(WERROR) --log-level=WARNING
ninja = ninja --quiet -j $(JOBS) -C
ctest = OMP_WAIT_POLICY=passive ctest --output-on-failure -j $(JOBS) --test-dir
need = @scripts/install-dependencies.sh

thorough_one = $(filter %_asan %_msan %_race %_random_1 %_random_2,$(TEST))

# The GPU's kernels are compiled once, in build/; other builds use what is there.
images = -DHEARTH_KERNEL_IMAGES=$(CURDIR)/build/cuda

.NOTPARALLEL:
.PHONY: all help demo tests test one thorough clang sanitize kernels cross instances debug fuzz bench device-pack format lint docs clean

all: ## build build/hearth
	$(need) build
	@$(configure) -B build >/dev/null
	@$(ninja) build hearth

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 16

demo: all ## build, then the whole road from text to samples in about two minutes
	$(need) demo
	@build/hearth demo

# Configured when the tests' compilers are there.
tests:
	$(need) build test
	@$(configure) -B build >/dev/null
	@$(ninja) build

test: tests ## build and run the tests
	$(ctest) build -LE thorough

one: tests ## run the tests whose name contains TEST: make one TEST=text/
	@$(if $(thorough_one),$(ninja) build test_thorough)
	$(ctest) build --verbose -R '$(TEST)' $(if $(thorough_one),,-LE thorough)

thorough: clang sanitize kernels cross instances ## what CI runs beside `make test`: the five that follow

clang: tests ## compile everything with clang 14
	@CC=clang-14 $(configure) -B build-clang -DCMAKE_BUILD_TYPE=Debug $(images) -DHEARTH_CUDA_MODES= >/dev/null
	@$(ninja) build-clang

sanitize: tests ## the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@$(configure) -B build-sanitize -DHEARTH_SANITIZE=address,undefined $(images) >/dev/null
	@$(ninja) build-sanitize
	ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $(ctest) build-sanitize -LE 'thorough|run' -E '^train/memory|^cuda/train_'

kernels: tests ## the GPU's kernels under sanitizers, a race detector, and in other orders of threads
	@$(ninja) build test_thorough
	$(ctest) build -L thorough

cross: tests ## cross-build for aarch64 and run its unit tests under qemu-user
	@scripts/aarch64-sysroot.sh build-aarch64/sysroot
	@$(configure) -B build-aarch64 --toolchain cmake/aarch64.cmake $(images) >/dev/null
	@$(ninja) build-aarch64
	$(ctest) build-aarch64 -LE program -E '^train/golden_nanochat' # which takes a quarter of an hour there

instances: tests ## the unit tests on every instruction set of this processor but its best
	@scripts/test-instances.sh build -j $(JOBS) -R '^(cpu|model|optim|step|train|eval)/' -LE program

debug: ## build build-debug/hearth without optimisation, for a debugger
	$(need) build
	@$(configure) -B build-debug -DCMAKE_BUILD_TYPE=Debug >/dev/null
	@$(ninja) build-debug hearth

fuzz: ## run every fuzz target for SECONDS (30)
	$(need) build fuzz
	@CC=clang-14 $(configure) -B build-fuzz -DHEARTH_FUZZ=ON -DHEARTH_SANITIZE=address,undefined >/dev/null
	@$(ninja) build-fuzz fuzz
	@scripts/fuzz.sh build-fuzz $(SECONDS_EACH)

bench: all ## measure hearth beside its peers (40 minutes; QUICK=1: 5): see docs/benchmarks.md
	$(need) bench
	@$(ninja) build bench-programs
	@python3 bench/bench.py

device-pack: ## make build-device/, which scripts/device-check.sh runs on a machine with a GPU
	@scripts/device-check.sh pack

format: ## lay out the C, C++ and CUDA files as .clang-format says
	$(need) lint
	@git ls-files '*.[ch]' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-14 -i

lint: ## check the layout of C, C++ and CUDA files, and the shell scripts
	$(need) lint
	@git ls-files '*.[ch]' '*.cpp' '*.cu' '*.cuh' | xargs clang-format-14 --dry-run -Werror
	@git ls-files '*.sh' .ci/run | xargs shellcheck -x -P SCRIPTDIR

docs: ## check that every link in the documentation leads somewhere
	@scripts/check-links.sh

clean: ## remove every build directory
	rm -rf build build-*
