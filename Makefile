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

# The GPU's kernels are compiled once, in build/; other builds use what is there.
images = -DHEARTH_KERNEL_IMAGES=$(CURDIR)/build/cuda

# Tests that run the program itself or measure its memory.
not_under_qemu = ^integration/|^eval/commands|^train/memory

.PHONY: all help demo test one clang sanitize cross instances debug fuzz bench device-pack format lint docs clean

all: ## build build/hearth
	$(need) build
	@$(configure) -B build >/dev/null
	@$(ninja) build

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## /make \1\t/p' Makefile | expand -t 16

demo: all ## build, then the whole road from text to samples in about two minutes
	$(need) demo
	@build/hearth demo

test: all ## build and run every test: clang 14 compiles, aarch64 under qemu, older instruction sets, then all of them here
	$(need) test
	@$(MAKE) --no-print-directory clang cross instances
	$(ctest) build

instances: all ## the unit tests on every instruction set of this processor but its best
	$(need) test
	@scripts/test-instances.sh build -j $(JOBS) -R '^(cpu|model|optim|step|train|eval)/' -E '^train/memory'

one: all ## run the tests whose name contains TEST: make one TEST=text/
	$(need) test
	$(ctest) build --verbose -R '$(TEST)'

clang: all ## compile everything with clang 14
	$(need) build test
	@CC=clang-14 $(configure) -B build-clang -DCMAKE_BUILD_TYPE=Debug $(images) -DHEARTH_CUDA_MODES= >/dev/null
	@$(ninja) build-clang

sanitize: all ## the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer
	$(need) build
	@$(configure) -B build-sanitize -DHEARTH_SANITIZE=address,undefined $(images) -DHEARTH_CUDA_MODES=plain >/dev/null
	@$(ninja) build-sanitize
	ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 $(ctest) build-sanitize -E '^integration/|^train/memory|^cuda/(train|resume|memory|doctor|device_check)$$|^cuda/train_|_(reverse|random_.|sm_.*)$$'

cross: all ## cross-build for aarch64 and run its unit tests under qemu-user
	$(need) build test
	@scripts/aarch64-sysroot.sh build-aarch64/sysroot
	@$(configure) -B build-aarch64 --toolchain cmake/aarch64.cmake $(images) >/dev/null
	@$(ninja) build-aarch64
	$(ctest) build-aarch64 -E '$(not_under_qemu)'

debug: ## build build-debug/hearth without optimisation, for a debugger
	$(need) build
	@$(configure) -B build-debug -DCMAKE_BUILD_TYPE=Debug >/dev/null
	@$(ninja) build-debug

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
