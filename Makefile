# The two commands of the README. Each sets up what it needs in .venv, from a fresh clone.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
PIP_OPTIONS := --quiet --disable-pip-version-check --constraint constraints.txt
INSTALL := $(BIN)/pip install $(PIP_OPTIONS)
# Files stay together, so that a program is compiled by one worker and found by the tests after.
PYTEST := $(BIN)/pytest --numprocesses 2 --dist loadfile
DOWNLOAD := $(BIN)/pip download $(PIP_OPTIONS)

OLDEST := .venv-oldest
# The tests that simulate: what builds on environments and robots asks nothing else of MuJoCo.
SIMULATING := tests/augmentations tests/envs tests/outside tests/show tests/symmetry tests/verify \
	tests/cli/test_proof.py tests/fleet/test_goal_fleet.py tests/fleet/test_host_fleet.py

ZOO := .venv-zoo
# RL Zoo's dependencies ask for earlier versions of these two than all the rest.
ZOO_EARLIER := ^(pillow|python-dateutil)==

.PHONY: reproduce test test-all test-oldest test-zoo docs clean

reproduce: $(VENV)/.installed ## Five claims, decided on a laptop: a page with curves and verdicts
	$(BIN)/augury study run studies/first-look.toml --out runs/reproduce

test: $(VENV)/.installed-for-tests ## Lint, types, import contract, and the tests that are quick
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PYTEST) -m "not slow"

test-all: test ## The same, and the tests that are expensive and rare
	$(PYTEST) -m slow

test-oldest: $(OLDEST)/.installed ## The quick tests that simulate, with the oldest MuJoCo that pyproject.toml allows
	$(OLDEST)/bin/pytest --numprocesses 2 --dist loadfile -m "not slow" $(SIMULATING)

test-zoo: $(ZOO)/.installed ## RL Zoo trains, resumes and plays with the drop-in
	$(ZOO)/bin/pytest tests/sb3/test_zoo.py

docs: $(VENV)/.installed-for-docs ## The site, into build/docs: a broken link or an undocumented public name fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) --editable .
	touch $@

$(VENV)/.installed-for-tests: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) --editable .[brax,dev,docs,gymnax,panda-gym,playground,ray,rsl-rl,sb3,tensorboard,wandb,warp]
	rm -rf $(VENV)/sb3 && mkdir $(VENV)/sb3 # SB3's own tests, which only its source distribution has
	$(DOWNLOAD) --no-deps --no-binary stable-baselines3 --dest $(VENV)/sb3 stable-baselines3
	tar --extract --gzip --strip-components 1 --directory $(VENV)/sb3 --file $(VENV)/sb3/*.tar.gz
	touch $@ $(VENV)/.installed

$(VENV)/.installed-for-docs: pyproject.toml constraints.txt | $(BIN)/pip
	$(INSTALL) --editable .[docs]
	touch $@

$(OLDEST)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(OLDEST)
	grep --invert-match '^mujoco' constraints.txt > $(OLDEST)/constraints.txt
	$(OLDEST)/bin/pip install --quiet --disable-pip-version-check --constraint $(OLDEST)/constraints.txt \
		--editable .[dev,panda-gym,sb3] mujoco==3.11.0
	touch $@

$(ZOO)/.installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(ZOO)
	grep --extended-regexp --invert-match '$(ZOO_EARLIER)' constraints.txt > $(ZOO)/constraints.txt
	$(ZOO)/bin/pip install --quiet --disable-pip-version-check --constraint $(ZOO)/constraints.txt \
		--editable .[dev,sb3] rl_zoo3==2.9.2
	touch $@

clean:
	rm -rf $(VENV) $(OLDEST) $(ZOO) build *.egg-info runs/reproduce
