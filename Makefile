# Every target sets up .venv from requirements.lock first; nothing else has to be installed by hand.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS   ?= 2
PRESET ?= small
# The accelerator of soc, fpga and asic: PRESET or CONFIG=FILE.toml, with changes SET="rows=8 cols=16".
HARDWARE = $(if $(CONFIG),--config $(CONFIG),$(PRESET)) $(addprefix --set ,$(SET))
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTEST := $(BIN)/pytest

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast soc evidence lint format types generated docs bench baseline figures fpga asic area-model front forecast formal coverage python-coverage mutate stale unchanged nightly wheel lock clean

help:  ## show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml tools/make_venv.py
	@test -n "$(PYTHON)" || { echo "python3.11 or later is missing: apt-get install python3"; exit 1; }
	$(PYTHON) tools/make_venv.py $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(READY)  ## a photograph of text, read by the accelerator in RTL, byte for byte; at most five minutes
	$(BIN)/intloom demo

test: $(READY)  ## all tests, quick ones first
	$(PYTEST) -n $(JOBS) --dist worksteal --durations 20

test-fast: $(READY)  ## tests of at most a few seconds each
	$(PYTEST) -n $(JOBS) --dist worksteal -m "not slow"

evidence: $(READY)  ## all forms of the zoo against onnxruntime, 5,000 changed models, the corpus on the RTL; hours
	$(PYTEST) -m evidence --durations 0 -rA

soc: $(READY)  ## a line of text, read by a simulated RISC-V system with the accelerator; NETWORK=yolov8n checks a network
	$(BIN)/python -m $(if $(NETWORK),intloom.soc --network $(NETWORK) $(HARDWARE),intloom.soc.reader $(PICTURE))

lint: $(READY)  ## style, import layering, docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)  ## rewrite sources in the project's style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(READY)  ## strict typing
	$(BIN)/mypy

generated: $(READY)  ## rewrite the files derived from hw/spec: C header, SystemRDL, manual pages, timing diagrams
	$(BIN)/python -m intloom.hw.spec
	$(BIN)/python -m intloom.manual
	$(BIN)/python -m tools.timing_diagrams

docs: $(READY)  ## documentation site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

baseline: $(READY)  ## Verilog and workload of COMMIT, for BASELINE of make bench, in build/baseline-COMMIT
	$(BIN)/python -m tools.baseline $(COMMIT)

bench: $(READY)  ## simulated cycles a second of every bench, and networks' wall time; BASELINE=an earlier npu.v or the folder of make baseline
	$(BIN)/intloom bench $(if $(BASELINE),--baseline $(BASELINE))

figures: $(READY)  ## run every network of README's table, checked, and rewrite the table; about ten minutes
	$(BIN)/python -m tools.figures

fpga: $(READY)  ## place and route PRESET (small), or CONFIG=FILE and SET="rows=8 …", for an ECP5, in out/fpga; BOARD=ulx3s: that board; COUNT=gw2a, xc7 or xcup: cells there by Yosys
	$(BIN)/python -m $(if $(BOARD),intloom.soc.board $(BOARD),intloom.hw.fpga $(HARDWARE) $(if $(COUNT),--count $(COUNT)))

asic: $(READY)  ## estimate PRESET in an open standard cell library, in out/asic; figures go into docs/asic.md
	$(BIN)/python -m intloom.hw.asic $(HARDWARE)

area-model: $(READY)  ## measure designs of intloom area with Yosys, those whose sources have changed; an hour of processor time
	$(BIN)/python -m intloom.hw.area

front: $(READY)  ## fronts of the networks of README as docs/assets/front.svg
	$(BIN)/python -m tools.front

forecast: $(READY)  ## forecast against RTL: five networks on 20 random configurations; an hour of processor time
	$(BIN)/python -m tools.forecast_error --jobs $(JOBS)

formal: $(READY)  ## proofs about the RTL
	$(PYTEST) tests/hw/formal

coverage: $(READY)  ## lines, branches and toggles of the RTL and cover points, what is missed in out/coverage/missed.txt
	$(BIN)/python -m tests.hw.coverage --jobs $(JOBS)

python-coverage: $(READY)  ## lines and branches of the Python packages by their tests, in out/python-coverage/html
	$(BIN)/python -m tools.python_coverage --erase -n $(JOBS) --dist worksteal

mutate: $(READY)  ## mutation test: how many small faults in the RTL its tests detect
	$(BIN)/python -m tools.mutate --jobs $(JOBS)

stale: $(READY)  ## figures of the docs that are older than their sources, with the commands that renew them; fails if there are any
	$(BIN)/python -m tools.evidence_page

unchanged: $(READY)  ## mark figures of FPGA and cell flows and of long runs as of today's sources where Verilog and flow are as they were
	$(BIN)/python -m tools.unchanged

nightly: $(READY)  ## suites of regress nightly, every test in its full size, coverage, mutations in what is left of two hours
	@failed=; begin=$$(date +%s); run() { $(BIN)/"$$@" || failed="$$failed $$*;"; }; \
	run intloom regress nightly --jobs $(JOBS); \
	run python -m tools.long_runs out/regress/nightly; \
	run python -m tools.python_coverage --renew --erase -n $(JOBS) --dist worksteal -m "nightly or not evidence"; \
	run pytest tests/hw -n $(JOBS) --dist worksteal -m "nightly or not evidence"; \
	run python -m tests.hw.coverage --renew --jobs $(JOBS); \
	run python -m tools.mutate --count 120 --minutes $$((105 - ($$(date +%s) - begin) / 60)) --limit 5 --jobs $(JOBS); \
	run python -m tools.evidence_page; \
	if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

wheel: $(READY)  ## build the wheel, in dist/
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .

# For the oldest Python that Debian 12 has; the hashes are of all files of a version, for any machine and any Python.
lock:  ## resolve the dependencies into requirements.lock, with hashes
	rm -rf build/lock-venv
	$(PYTHON) tools/make_venv.py build/lock-venv
	build/lock-venv/bin/python -m pip install --quiet --disable-pip-version-check uv
	printf 'hatchling>=1.27,<2\neditables>=0.5\n' | UV_CUSTOM_COMPILE_COMMAND="make lock" build/lock-venv/bin/uv pip compile \
	    pyproject.toml - --extra dev --upgrade --python-version 3.11 --python-platform linux \
	    --generate-hashes --no-annotate --no-emit-index-url --quiet --output-file requirements.lock

clean:  ## remove .venv and everything built
	rm -rf $(VENV) build dist out site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
