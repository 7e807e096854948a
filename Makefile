# make demo   trains on handwritten digits (examples/digits.py)
# make quick  a verdict in two minutes: style, and the tests that find most of what breaks
# make test   style, types, tests and doctests; at the end the slowest tests
# make thorough   the tests that `make test` leaves out because they take long: thousands of random
#             programs where `make test` draws a few dozen (an hour or more); kernels are compiled
#             with Triton 3.6.0, in an environment of its own, too
# make coverage   which lines the tests run: the files with the fewest, and pages in build/coverage
# make pytest     the tests alone; with TESTS='tests/core -k tree' some of them (test, coverage too)
# make arm    the generated C for ARM, emulated by qemu, and for AVX2 on this processor: vectors,
#             mathematics, samples of all primitives, exported programs; the runtime is built for ARM.
#             It needs Debian's cross compiler and says so
# make portable   exported C for Linux, Windows, macOS and WebAssembly by `zig cc` (downloads it), run
#             where qemu or node can; the page of examples/digits_in_a_browser in Chromium
# make ecosystem  JAX's own libraries on functrans, without JAX (downloads them): the tests that optax
#             and chex ship, of those that pass with JAX, and programs on each of the libraries; with
#             JAX=/path/to/python results and times are compared with that interpreter's JAX
# make docs   the site, in build/docs/index.html: every page, every public name, the notebooks as they
#             are stored; a warning is an error
# make bench  call overheads, programs on this CPU, per-sample statistics and the suite of research
#             programs, beside JAX and PyTorch (downloads both), programs over lanes beside C++
# make gpu    on a machine with an NVIDIA GPU and its driver: the tests that need one, and programs
#             beside JAX and PyTorch and CUDA by CuPy (downloads them, 6 GB; 50 minutes); the results are in
#             benchmarks/results/. make gpu GPU_PYTHON=python3 takes an environment that has all
# Each makes its own virtual environment once and installs what it needs; nothing else is required but
# Python 3.11 or newer, a C++ compiler and make. At most two cores are used.

PYTHON ?= $(firstword $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo $$p; done))
# core/__init__.py: an install remembers which folders are packages, and core was none once
SOURCES := pyproject.toml functrans/version.py functrans/core/__init__.py CMakeLists.txt \
  $(wildcard csrc/* csrc/cuda/*)
export CMAKE_BUILD_PARALLEL_LEVEL := 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo quick test pytest thorough coverage arm portable ecosystem docs bench gpu driver lint typecheck clean
.DELETE_ON_ERROR:

demo: .venv/.installed
	.venv/bin/python examples/digits.py

# two workers on two cores: BLAS threads beside them would only wait for each other
PYTEST = OPENBLAS_NUM_THREADS=1 $(1)/bin/python -m pytest -n 2

test: lint typecheck
	$(call PYTEST,.venv-test) --durations=25 $(TESTS)

pytest: .venv-test/.installed
	$(call PYTEST,.venv-test) --durations=25 $(TESTS)

quick: lint
	$(call PYTEST,.venv-test) $(QUICK)

thorough: .venv-test/.installed .venv-triton36/.installed
	$(call PYTEST,.venv-test) -m 'thorough and not gpu and not gpus' --durations=25
	# kernels compile with the oldest Triton, too: it takes more shared memory for some
	$(call PYTEST,.venv-triton36) -m 'not gpu and not gpus' $(COMPILING)

# with the profile for slow machines: traced code draws slowly
coverage: .venv-test/.installed
	status=0; mkdir -p build/coverage; \
	$(call PYTEST,.venv-test) --hypothesis-profile=ci --cov --cov-report= $(TESTS) || status=1; \
	.venv-test/bin/coverage html --quiet || status=1; \
	.venv-test/bin/coverage report --sort=cover | sed '32,$${/^TOTAL/!d;}'; \
	exit $$status

# of every room what fails most often, for few seconds each: 180 s of one core, of which the laws of
# primitives are 40
QUICK := tests/test_imports.py tests/test_version.py tests/test_doctests.py tests/test_array.py \
  tests/core tests/docs tests/errors tests/control_flow tests/lowering/golden \
  tests/lowering/test_fusion.py tests/lowering/test_passes.py tests/laws/test_primitive_laws.py \
  tests/laws/test_compiled_laws.py::test_compiled_values_are_eager_values \
  tests/laws/test_symbolic_laws.py::test_values_in_kernels_of_triton \
  tests/transforms/test_jit.py tests/transforms/test_vmap.py tests/transforms/test_grad.py \
  tests/runtime/test_runtime_jit.py tests/c/test_backend.py tests/numpy/test_elementwise.py \
  tests/numpy/test_reductions.py tests/numpy/test_protocol.py tests/export/test_exported_programs.py

COMPILING := tests/laws/test_network_cuda_laws.py tests/triton/test_stores.py \
  tests/triton/test_kernel_forms.py tests/triton/test_empty_kernels.py

arm: arm-tools .venv-portable/.installed
	$(call PYTEST,.venv-portable) -m portable --durations=10 tests/portable/test_vectors_elsewhere.py \
	  tests/portable/test_programs_elsewhere.py tests/portable/test_runtime_on_arm.py $(TESTS)

portable: portable-tools .venv-portable/.installed
	$(call PYTEST,.venv-portable) -m portable --durations=10 tests/portable/test_systems.py \
	  tests/portable/test_page.py $(TESTS)

# WHEELS is a folder of wheels to be taken instead of those of PyPI
ecosystem: .venv-ecosystem/.libraries
	status=0; .venv-ecosystem/bin/python -m tests.ecosystem.library_tests --write || status=1; \
	.venv-ecosystem/bin/python -m tests.ecosystem.notebook || status=1; \
	.venv-ecosystem/bin/python -m tests.ecosystem.examples --write $(if $(JAX),--jax $(JAX)) || status=1; \
	exit $$status

.venv-ecosystem/.libraries: .venv-ecosystem/.installed tests/ecosystem/requirements.txt
	.venv-ecosystem/bin/python -m pip install --quiet --no-deps $(if $(WHEELS),--find-links $(WHEELS)) \
	  -r tests/ecosystem/requirements.txt
	@touch $@

# Before anything is downloaded: what these need of the machine.
.PHONY: arm-tools portable-tools
arm-tools: NEEDS = aarch64-linux-gnu-gcc aarch64-linux-gnu-g++ qemu-aarch64 cmake
arm-tools: PACKAGES = gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user cmake
portable-tools: NEEDS = qemu-aarch64 node chromium
portable-tools: PACKAGES = qemu-user nodejs chromium
arm-tools portable-tools:
	@for tool in $(NEEDS); do command -v $$tool >/dev/null || { \
	  echo "make $(@:-tools=) needs $$tool. On Debian and Ubuntu: apt-get install $(PACKAGES)"; \
	  exit 1; }; done

lint: .venv-test/.installed
	.venv-test/bin/ruff check .

typecheck: .venv-test/.installed
	rm -rf build/typing && mkdir -p build/typing/functrans
	ln -s $(CURDIR)/functrans/* $(CURDIR)/primitives $(CURDIR)/lowering build/typing/functrans/
	.venv-test/bin/mypy

docs: .venv-docs/.installed
	.venv-docs/bin/python -m sphinx -W --keep-going -q -j 2 docs build/docs
	@echo "build/docs/index.html"

bench: .venv-bench/.installed
	status=0; for table in overheads cpu per_sample dynamic explanations checks programs lanes; do \
	  .venv-bench/bin/python benchmarks/$$table.py || status=1; \
	done; exit $$status

gpu: driver $(if $(GPU_PYTHON),,.venv-gpu/.installed)
	status=0; python=$(or $(GPU_PYTHON),.venv-gpu/bin/python); \
	$$python -m pytest -m 'gpu and not thorough' || status=1; \
	$$python benchmarks/gpu.py --budget 1500 || status=1; \
	$$python benchmarks/gpu.py --more --budget 1500 || status=1; \
	$$python benchmarks/dynamic.py --gpu || status=1; \
	$$python benchmarks/programs.py --gpu --budget 550 || status=1; \
	$$python benchmarks/lanes.py --gpu --budget 300 || status=1; \
	exit $$status

# Before anything is downloaded: whether a GPU's driver is here.
driver:
	@test -n "$(CUDA)" || { echo "There is no NVIDIA driver here (libcuda.so.1): make gpu needs a GPU."; exit 1; }

.venv/.installed: EXTRAS = [demo]
.venv-test/.installed: EXTRAS = [test,demo,distributed]
.venv-triton36/.installed: EXTRAS = [test]
.venv-triton36/.installed: PEERS = triton==3.6.0
.venv-portable/.installed: EXTRAS = [test,demo,compiler]
.venv-portable/.installed: PEERS = pybind11
.venv-ecosystem/.installed: EXTRAS = [demo]
.venv-ecosystem/.installed: PEERS = nbclient nbformat ipykernel
.venv-docs/.installed: EXTRAS = [docs]
.venv-bench/.installed: EXTRAS =
.venv-bench/.installed: PEERS = jax==0.10.2 torch==2.13.0
# PyTorch brings the libraries for transforms and linear algebra. Drivers for CUDA 12 take the last
# one on PyPI that was built for it.
CUDA = $(shell $(or $(GPU_PYTHON),$(PYTHON)) -c 'import ctypes; v = ctypes.c_int(); \
  ctypes.CDLL("libcuda.so.1").cuDriverGetVersion(ctypes.byref(v)); print(v.value // 1000)' 2>/dev/null)
TORCH = $(if $(filter 12,$(CUDA)),torch==2.10.0,torch==2.13.0)
.venv-gpu/.installed: EXTRAS = [gpu,test]
.venv-gpu/.installed: PEERS = 'jax[cuda$(CUDA)]==0.10.2' $(TORCH) cupy-cuda$(CUDA)x

# The extension is built inside the environment's folder, so that environments do not disturb each
# other; it is built again when a source of it changes. Python files need no reinstall.
%/.installed: $(SOURCES)
	@test -n "$(PYTHON)" || { echo "functrans needs Python 3.11 or newer (make PYTHON=/path/to/python3)"; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; \
	  sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' || \
	  { echo "The headers of $(PYTHON) are missing. On Debian and Ubuntu: apt-get install python3-dev"; exit 1; }
	@command -v $${CXX:-g++} >/dev/null || command -v c++ >/dev/null || \
	  { echo "A C++ compiler is missing. On Debian and Ubuntu: apt-get install g++"; exit 1; }
	@test -x $*/bin/pip || { rm -rf $* && $(PYTHON) -m venv $* >/dev/null 2>&1; } || \
	  { rm -rf $* && $(PYTHON) -m venv --without-pip $* && \
	    $(PYTHON) -m pip --python $*/bin/python install --quiet pip 2>/dev/null; } || \
	  { rm -rf $*; echo "$(PYTHON) cannot make a virtual environment (ensurepip or pip is missing)." \
	    "On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	$*/bin/python -m pip install --quiet -C build-dir=$*/build -e '.$(EXTRAS)' $(PEERS)
	@touch $@

clean:
	rm -rf .venv .venv-test .venv-triton36 .venv-portable .venv-ecosystem .venv-docs .venv-bench .venv-gpu \
	  build dist
