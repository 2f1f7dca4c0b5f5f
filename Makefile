# The commands of the project. `make quickstart` and `make test` are all a newcomer needs.
PRESET ?= dev
JOBS ?= $(shell nproc)
HEXAD = build/$(PRESET)/bin/hexad

.PHONY: build setup configure quickstart smollm2 test test-layouts test-faults test-torture test-gpu test-peers
.PHONY: test-sanitizers test-tsan fuzz golden lint tidy format bundle sbom sdk-deb sdk-tarball clean
.PHONY: wheel tarball deb test-install

build: configure
	@tools/build_progress.sh $(PRESET) $(JOBS)

configure: setup
	@cmake --preset $(PRESET) > build-configure.log 2>&1 || { cat build-configure.log; exit 1; }
	@rm -f build-configure.log

setup:
	@tools/setup.sh $(if $(filter cuda,$(PRESET)),--cuda)

# Trains the embedded tiny model to a rising reward (about a minute after the build of what it needs; `make build` and
# `make test` build the rest).
quickstart: configure
	@tools/build_progress.sh $(PRESET) $(JOBS) quickstart
	$(HEXAD) train configs/quickstart.yaml

# The same on a real model: SmolLM2-135M-Instruct on one-digit addition, about 20 minutes on two cores; with PRESET=cuda
# on two-digit addition, about a minute on one H200.
smollm2: build
	@test -e results/SmolLM2-135M-Instruct || $(HEXAD) convert "$$(tools/fetch_smollm2.sh)" results/SmolLM2-135M-Instruct
	$(HEXAD) train configs/smollm2_arithmetic$(if $(filter cuda,$(PRESET)),_gpu).yaml

# Ends with what was skipped and why, and which cases held only when they were run again: those of the suite "timing"
# are (tests/support/main.cpp), for a busy machine may not let processes answer in time. SmolLM2 comes from the cache or
# the network; where it cannot be had, its tests are skipped, by name.
smollm2_dir = $(CURDIR)/build/$(PRESET)/SmolLM2-135M-Instruct
test: build lint
	@tools/setup.sh --tests
	@rm -rf build/$(PRESET)/test-report
	@test -e $(smollm2_dir) || { gguf=$$(tools/fetch_smollm2.sh) && $(HEXAD) convert "$$gguf" $(smollm2_dir); } || \
	  echo "SmolLM2 cannot be fetched: its tests are skipped"
	@test ! -e $(smollm2_dir) || export HEXAD_SMOLLM2_DIR=$(smollm2_dir); \
	  ctest --preset $(PRESET) -j $(JOBS); code=$$?; tools/test_report.sh build/$(PRESET)/test-report; exit $$code

# Every layout of tests/plugins/layouts/matrix.txt against one rank, a line each; HEXAD_LAYOUTS=REGEX runs some of them.
test-layouts: build
	ctest --preset $(PRESET) -C layouts -L layouts --verbose

# Asynchronous runs over servers of each engine that meet 100 faults by name, and runs that have to end: minutes, on
# two cores.
test-faults: build
	ctest --preset $(PRESET) -C faults -L faults --verbose

# kill -9 of controller and workers, and of reward programs, at 100 random moments each of a run on toy plugins, and as
# often of the quickstart.
torture = HEXAD_TORTURE=100 HEXAD_SOURCE_DIR=$(CURDIR) HEXAD_BUILD_DIR=$(CURDIR)/build/$(PRESET)
test-torture: build
	$(torture) build/$(PRESET)/tests/test_app -tc="killed*"
	$(torture) build/$(PRESET)/tests/test_run -tc="*killed at any moment*"

# The equalities of the CPU's tests on the GPUs of this machine, and those of their kernels. What needs more GPUs than
# there are is left out, and named in a line at the end of each program. BUILT=1: with build/cuda as it is; ARGS: of
# ctest.
test-gpu:
	$(if $(BUILT),,$(MAKE) build PRESET=cuda)
	ctest --preset cuda -C gpu -L gpu --verbose $(ARGS)

# The vLLM bridge against a real vLLM server on this CPU (6 GB in the cache, minutes a start), and runs that are told to
# the real libraries of trackers and to a server of MLflow.
test-peers: build
	@tools/setup_peers.sh
	ctest --preset $(PRESET) -C peers -L peers --verbose $(ARGS)

# The inputs that the fuzzers' corpora keep, under AddressSanitizer and UBSan; `make test` replays them without.
test-sanitizers: setup
	@tools/setup.sh --tests
	cmake --preset fuzz > /dev/null && cmake --build --preset fuzz -j $(JOBS)
	ctest --preset fuzz -L fuzz

# The tests of plugins' loader, of workers and of all that schedules them under ThreadSanitizer, and what it found in
# any process they started.
test-tsan: setup
	@tools/setup.sh --tests
	cmake --preset tsan > /dev/null && cmake --build --preset tsan -j $(JOBS)
	rm -f build/tsan/race.*
	ctest --preset tsan -j $(JOBS); code=$$?; ! cat build/tsan/race.* 2> /dev/null || code=1; exit $$code

# RUNS inputs to each fuzzer of tests/fuzz (FUZZERS="config gguf": to these), a line each.
RUNS ?= 1000000
fuzz: setup
	@tools/setup.sh --tests
	cmake --preset fuzz > /dev/null && cmake --build --preset fuzz -j $(JOBS)
	tools/fuzz.sh $(RUNS) $(FUZZERS)

# The golden vectors: the number of cases by file, and what no test runs.
golden: build
	@rm -rf build/$(PRESET)/test-report
	@ctest --preset $(PRESET) -L golden --verbose | grep -E '^[0-9]+: +[0-9]+ cases|tests passed|FAILED' | \
	  sed 's/^[0-9]*: //'; tools/test_report.sh build/$(PRESET)/test-report

# Directions of dependencies, sizes, and that every script can be started by its name.
lint:
	tools/check_includes.sh
	tools/check_sizes.sh
	@! find .ci benchmarks tools -type f ! -perm -u+x -exec grep -lzP '\A#!' {} + | sed 's/$$/: chmod +x/' | grep .

# clang-tidy over what differs from BASE, or from where this branch left origin/main.
tidy: configure
	@tools/setup.sh --tests
	tools/tidy.sh $(BASE)

format:
	git ls-files '*.cpp' '*.hpp' '*.c' '*.h' '*.cu' | grep -vE '^sdk/include/(dlpack|hexad/abi)\.h$$' | \
	  xargs clang-format -i

bundle:
	tools/bundle.sh build/$(PRESET)
	tools/sbom.py build/$(PRESET) build/$(PRESET)/bundle

# What the build is made of, as CycloneDX: build/PRESET/hexad.cdx.json. Each artefact below gets its own beside it.
sbom: build
	tools/sbom.py build/$(PRESET)

# The SDK alone, into build/PRESET/package: hexad-sdk_*.deb, or hexad-sdk-*.tar.gz that builds by itself.
sdk-deb: build
	cpack -G DEB --config build/$(PRESET)/CPackConfig.cmake -B build/$(PRESET)/package
	tools/sbom.py build/$(PRESET) build/$(PRESET)/package/hexad-sdk_*.deb

sdk-tarball: build
	cpack -G TGZ --config build/$(PRESET)/CPackSourceConfig.cmake -B build/$(PRESET)/package
	tools/sbom.py build/$(PRESET) build/$(PRESET)/package/hexad-sdk-*.tar.gz

# What is installed without compiling (docs/install.md), into build/PRESET/package: a wheel, a tarball with install.sh,
# and a Debian package for the release that it is made on.
package = build/$(PRESET)/package
staged = tools/setup.sh --package && tools/package/stage.sh build/$(PRESET) $(package)/stage/$@
wheel: build
	@$(staged) carry && tools/package/wheel.py $(package)/stage/$@ $(package)

tarball: build
	@$(staged) carry && tools/package/tarball.sh $(package)/stage/$@ $(package)

deb: build
	@$(staged) depend && tools/package/deb.sh $(package)/stage/$@ $(package)

# All of them, and the Dockerfile, in a bare Debian 12 as an ordinary user: a line each. As root. FORMS="wheel deb": of
# these alone.
test-install: wheel tarball deb
	tools/package/test_install.sh build/$(PRESET) $(FORMS)

clean:
	rm -rf build
