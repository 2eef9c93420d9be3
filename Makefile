# One command per intent. `make demo` and `make test` do all the set-up themselves; they need
# Python 3.11-3.13 with venv, a C compiler and make.
#
#   make demo     install into .venv and train the CNN of examples/fashion_mnist.py (ARGS="--mode both")
#   make test     install into .venv, run the C tests and pytest (ARGS="-k name")
#   make dev      editable install with asserts, warnings are errors
#   make check    ruff, mypy --strict and the style tests
#   make ctest    the C tests alone, no Python needed; SAN=1 under ASan and UBSan
#   make asan     build the extension with ASan and UBSan in .venv-asan and run pytest there
#   make golden   rewrite the expected parts of the golden files; read the diff
#   make bench    ratios of compiled to plain programs, and to peers that are installed (ARGS="softmax")
#   make clean    remove what the commands above have built, .venv included
#
# PYTHON=python3.12 picks the interpreter, VENV=dir the environment, CCOMPILE_WERROR=1 makes warnings errors.

VENV ?= .venv
ARGS ?=
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --no-build-isolation

.PHONY: help demo test dev check ctest asan golden bench clean install tools
help:
	@sed -n 's/^#   //p' Makefile

# The first of these that runs and is new enough; a pyenv shim may exist and not run.
PICK = for p in $(or $(PYTHON),python3.11 python3.12 python3.13 python3); do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	    >/dev/null 2>&1 && { echo "$$p"; exit 0; }; done; \
	echo "ccompile: needs Python 3.11, 3.12 or 3.13 with venv (Debian: python3-venv); set PYTHON=..." >&2; exit 1

# With build isolation each build would install NumPy anew: the build's own needs go into the environment.
$(VENV)/ready: pyproject.toml
	@set -e; python=$$($(PICK)); echo "environment $(VENV) with $$python"; "$$python" -m venv --clear $(VENV)
	@$(PY) -c 'import tomllib; f = open("pyproject.toml", "rb"); \
	    print("\n".join(tomllib.load(f)["build-system"]["requires"]))' > $(VENV)/build-requires.txt
	$(PIP) install --quiet -r $(VENV)/build-requires.txt
	@touch $@

# setuptools collects the package in build/lib.* and would install a module that was deleted since.
.PHONY: fresh
fresh:
	@rm -rf build/lib.*

install: $(VENV)/ready fresh
	$(INSTALL) '.[test]'

tools: $(VENV)/ready fresh
	$(INSTALL) '.[check]'

demo: $(VENV)/ready fresh
	$(INSTALL) .
	$(PY) examples/fashion_mnist.py $(ARGS)

test: ctest install
	$(PY) -m pytest $(ARGS)

dev: $(VENV)/ready fresh
	CCOMPILE_BUILD=debug CCOMPILE_WERROR=1 $(INSTALL) -e '.[check]'

check: tools
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m pytest -q tests/style

ctest:
	@$(MAKE) --no-print-directory -j2 -f tests/c/ctest.mk SAN=$(SAN)

asan: fresh
	$(MAKE) VENV=.venv-asan .venv-asan/ready
	CCOMPILE_BUILD=asan .venv-asan/bin/python -m pip --disable-pip-version-check install --quiet \
	    --no-build-isolation '.[test]'
	LD_PRELOAD="$$($(or $(CC),cc) -print-file-name=libasan.so)" PYTHONMALLOC=malloc \
	    ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1 \
	    .venv-asan/bin/python -m pytest $(ARGS)

golden: install
	$(PY) -m pytest --update-golden $(ARGS)

# Settings that slow NumPy's matrix products down would flatter us.
bench: $(VENV)/ready fresh
	$(INSTALL) .
	env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(PY) -m benchmarks $(ARGS)

clean:
	rm -rf build .venv .venv-* python/*.egg-info python/ccompile/*.so .pytest_cache .mypy_cache .ruff_cache
