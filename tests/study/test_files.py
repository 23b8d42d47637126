"""Studies as their files say them: what is refused and how, what an axis makes, and the paper's own files."""

import json
import math
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from augury.cli import main
from augury.envs import ENVIRONMENTS
from augury.errors import UserError
from augury.fleet.building import fleets_of, program_of
from augury.runs.results import read_run
from augury.study import chances
from augury.study.arms import Size, StudyArm, arms_of
from augury.study.claims import Claim
from augury.study.rows import Written, slug
from augury.study.schema import ChanceStudy, Quick, Study, read
from augury.study.store import Store

STUDIES = Path(__file__).parents[2] / "studies"
RESULTS = STUDIES.parent / "results"
RUN_IN_PART = {"figure-6"}
"""Studies of which only some arms have been run so far."""
PAPER = STUDIES / "paper"
PANDA = ["panda-push", "panda-slide", "panda-pick-and-place", "panda-flip"]
HEAD = 'title = "T"\ntask = "goal2d"\nagents = 2\nsteps = 12_000\n'
ARM = '[[arms]]\naugmentation = "goal2d/translate"\n'
PROXIMAL = '[[arms]]\naugmentation = "goal2d/translate-proximal"\n'
QUICK = "[quick]\nagents = 2\nsteps = 20_000\n"
CLAIM = '[[claims]]\nsays = "so it is"\n'
CHANCES = 'title = "T"\nsamples = 1000\n'
CHANCE = '[[chances]]\ntask = "goal2d"\naugmentation = "goal2d/translate"\npaper = 0.1\n'


def study_of(folder: Path, text: str | bytes) -> Path:
    path = folder / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def arms_in(path: Path, size: Size | None = None) -> list[StudyArm]:
    """What a command would train, after all its checks."""
    study = read(path)
    if isinstance(study, Study):
        return arms_of(study, str(path), size or Size())
    chances.check(study, str(path))
    return []


BAD: dict[str, tuple[str | bytes, str]] = {
    "not TOML": (
        "title 3",
        " is not TOML: Expected '=' after a key in a key/value pair (at line 1, column 7)",
    ),
    "not text": (b"\xff\xfe", " is not TOML: 'utf-8' codec can't decode"),
    "a key twice": (HEAD + "agents = 3\n" + ARM, " is not TOML: Cannot overwrite a value (at line 5"),
    "nothing": ("", ": 'title' is missing"),
    "no title": (HEAD.replace('title = "T"\n', "") + ARM, ": 'title' is missing"),
    "no agents": (HEAD.replace("agents = 2\n", "") + ARM, ": 'agents' is missing"),
    "no arms": (HEAD, ": 'arms' is missing"),
    "empty arms": (HEAD + "arms = []", ": a study needs [[arms]]"),
    "no steps in quick": (HEAD + ARM + "[quick]\nagents = 2", ": in [quick], 'steps' is missing"),
    "unknown key": (HEAD + "agnets = 3\n" + ARM, ": unknown key 'agnets': did you mean 'agents'?"),
    "unknown key of an arm": (
        HEAD + ARM + ARM + "ratoi = 2",
        ": in [[arms]] 2, unknown key 'ratoi': did you mean 'ratio'?",
    ),
    "unknown setting": (
        HEAD + "[settings]\nbatchsize = 3\n" + ARM,
        ": in [settings], unknown key 'batchsize': did you mean 'batch_size'?",
    ),
    "unknown key of quick": (
        HEAD + ARM + QUICK + "step = 3",
        ": in [quick], unknown key 'step': did you mean 'steps'?",
    ),
    "unknown quick setting": (
        HEAD + ARM + QUICK + "settings = { evaluate_evry = 3 }",
        ": in [quick.settings], unknown key 'evaluate_evry': did you mean 'evaluate_every'?",
    ),
    "unknown key of a claim": (
        HEAD + ARM + CLAIM + 'beter = "a"',
        ": in [[claims]] 1, unknown key 'beter': did you mean 'better'?",
    ),
    "agents of one arm": (
        HEAD + ARM + "agents = 3",
        ": in [[arms]] 1, unknown key 'agents': all arms have equally many, so say it at the top of the file",
    ),
    "steps among the settings": (
        HEAD + "[settings]\nsteps = 3\n" + ARM,
        ": in [settings], unknown key 'steps': all arms train equally long, so say it at the top of the file",
    ),
    "an arm's environment": (
        HEAD + ARM + 'environment = "goal2d-quadrant"',
        ": in [[arms]] 1, unknown key 'environment': 'task' says where agents train",
    ),
    "agents in words": (
        HEAD.replace("agents = 2", 'agents = "two"') + ARM,
        ": 'agents' must be a whole number, not a string",
    ),
    "half an agent": (
        HEAD.replace("agents = 2", "agents = 2.5") + ARM,
        ": 'agents' must be a whole number, not a fraction",
    ),
    "negative agents": (
        HEAD.replace("agents = 2", "agents = -2") + ARM,
        ": 'agents' must be a whole number of at least 1",
    ),
    "no steps": (HEAD.replace("12_000", "0") + ARM, ": 'steps' must be a whole number of at least 1"),
    "a number as task": (
        HEAD.replace('"goal2d"', "3") + ARM,
        ": 'task' must be a string or a list, not a whole number",
    ),
    "a number among tasks": (
        HEAD.replace('"goal2d"', '["goal2d", 3]') + ARM,
        ": item 2 of 'task' must be a string, not a whole number",
    ),
    "an unknown axis": (
        HEAD + 'x_axis = "step"\n' + ARM,
        ": 'x_axis' cannot be 'step': did you mean 'steps'?",
    ),
    "arms as a table": (HEAD + "[arms]", ": 'arms' must be a list, not a table"),
    "a number as arm": (HEAD + "arms = [3]", ": item 1 of 'arms' must be a table, not a whole number"),
    "a number as settings": (
        HEAD + "settings = 3\n" + ARM,
        ": 'settings' must be a table, not a whole number",
    ),
    "a word as ratio": (
        HEAD + ARM + 'ratio = [1, "two"]',
        ": in [[arms]] 1, 'ratio' must be a number, not a string",
    ),
    "a wrong word as update ratio": (
        HEAD + ARM + 'update_ratio = "ratios"',
        ": in [[arms]] 1, 'update_ratio' cannot be 'ratios': did you mean 'ratio'?",
    ),
    "unknown goals": (
        HEAD + ARM + 'train_goals = "some"',
        ": in [[arms]] 1, 'train_goals' cannot be 'some': choose from all, quadrant",
    ),
    "one width": (HEAD + ARM + "hidden = 3", ": in [[arms]] 1, 'hidden' must be a list, not a whole number"),
    "a word as width": (
        HEAD + ARM + 'hidden = [8, "a"]',
        ": in [[arms]] 1, item 2 of 'hidden' must be a whole number, not a string",
    ),
    "a date": (HEAD + ARM + "ratio = 1979-05-27", ": in [[arms]] 1, 'ratio' must be a number, not date"),
    "a word as margin": (
        HEAD + ARM + CLAIM + 'better = "translate"\nthan = "none"\nby = "3"',
        ": in [[claims]] 1, 'by' must be a number, not a string",
    ),
    "alike to nothing": (
        HEAD + ARM + CLAIM + 'alike = ["translate"]\nwithin = 0.1',
        ": in [[claims]] 1, 'alike' must be a list of length 2, not 1",
    ),
    "an empty axis": (HEAD + ARM + "ratio = []", ": in [[arms]] 1, 'ratio' is an empty list"),
    "no task": (HEAD.replace('"goal2d"', "[]") + ARM, ": 'task' must name one environment, or several"),
    "a task twice": (
        HEAD.replace('"goal2d"', '["goal2d", "goal2d"]') + ARM,
        ": 'task' must name one environment, or several different ones",
    ),
    "two arms alike": (
        HEAD + ARM + ARM + 'name = "other"',
        ": the arms 'translate' and 'other' have the same settings",
    ),
    "a value twice": (
        HEAD + ARM + "ratio = [1, 1.0]",
        ": two arms are called 'translate, m = 1': give one another 'name'",
    ),
    "two arms of one name": (
        HEAD + ARM + 'name = "x"\n' + ARM + 'name = "x"\nratio = 2',
        ": two arms are called 'x': give one another 'name'",
    ),
    "two arms in one folder": (
        HEAD + ARM + 'name = "a b"\n' + ARM + 'name = "A-b"\nratio = 2',
        ": 'goal2d, a b' and 'goal2d, A-b' would share the folder goal2d/a-b: rename one",
    ),
    "two panels in one folder": (
        HEAD + ARM + 'panel = "P q"\n' + ARM + 'panel = "p-q"\nratio = 2',
        ": 'P q, translate' and 'p-q, translate' would share the folder p-q/translate: rename one",
    ),
    "a name without letters": (HEAD + ARM + 'name = "無"', ": in [[arms]] 1, '無' cannot name a folder"),
    "a panel without letters": (HEAD + ARM + 'panel = "-"', ": in [[arms]] 1, '-' cannot name a folder"),
    "a name of two lines": (HEAD + ARM + 'name = "a\\nb"', r": in [[arms]] 1, 'a\nb' cannot name a folder"),
    "a name without end": (HEAD + ARM + f'name = "{300 * "x"}"', "it takes 1 to 100 letters and digits"),
    "a claim about a missing arm": (
        HEAD + ARM + CLAIM + 'better = "translate"\nthan = "none"',
        ": in [[claims]] 1 ('so it is') on goal2d, unknown arm 'none': choose from translate",
    ),
    "a claim about a misspelt arm": (
        HEAD + ARM + CLAIM + 'better = "transalte"\nthan = "none"',
        ": in [[claims]] 1 ('so it is') on goal2d, unknown arm 'transalte': did you mean 'translate'?",
    ),
    "a claim about a missing task": (
        HEAD + ARM + "[[arms]]\n" + CLAIM + 'better = "translate"\nthan = "none"\ntasks = ["goal3d"]',
        ": in [[claims]] 1 ('so it is'), unknown task 'goal3d': did you mean 'goal2d'?",
    ),
    "a claim of nothing": (HEAD + ARM + CLAIM, ": in [[claims]] 1 ('so it is'), say 'better' and 'than'"),
    "a claim of two lines": (
        HEAD + ARM + CLAIM.replace("so ", "so\\n"),
        ": in [[claims]] 1 ('so it is'), say",
    ),
    "half a claim": (
        HEAD + ARM + CLAIM + 'better = "translate"',
        ": in [[claims]] 1 ('so it is'), say 'better'",
    ),
    "a claim of both": (
        HEAD + ARM + CLAIM + 'better = "a"\nthan = "b"\nalike = ["a", "b"]\nwithin = 0.1',
        ": in [[claims]] 1 ('so it is'), say 'better' and 'than' (and maybe 'by'), or 'alike' and 'within'",
    ),
    "alike by something": (
        HEAD + ARM + CLAIM + 'alike = ["a", "b"]\nwithin = 0.1\nby = 0.1',
        ": in [[claims]] 1 ('so it is'), say 'better' and 'than'",
    ),
    "alike within anything": (
        HEAD + ARM + CLAIM + 'alike = ["a", "b"]\nwithin = inf',
        ": in [[claims]] 1 ('so it is'), 'by' and 'within' must be finite",
    ),
    "a bound that is no number": (
        HEAD + ARM + CLAIM + 'better = "a"\nthan = "b"\nby = nan',
        ": in [[claims]] 1 ('so it is'), 'by' and 'within' must be finite",
    ),
    "alike within nothing": (
        HEAD + ARM + CLAIM + 'alike = ["a", "b"]\nwithin = 0',
        ": in [[claims]] 1, 'within' must be a number above 0",
    ),
    "an arm better than itself": (
        HEAD + ARM + CLAIM + 'better = "translate"\nthan = "translate"',
        ": in [[claims]] 1 ('so it is'), 'translate' is compared with itself",
    ),
    "unknown task": (
        HEAD.replace("goal2d", "goal3d") + ARM,
        ": unknown task 'goal3d': did you mean 'goal2d'?",
    ),
    "unknown augmentation": (
        HEAD + ARM.replace("translate", "tranlate"),
        ": in [[arms]] 1 ('tranlate' on goal2d), unknown augmentation 'goal2d/tranlate': "
        "did you mean 'goal2d/translate'?",
    ),
    "unknown algorithm": (
        HEAD + ARM + 'algorithm = "tdd3"',
        ": in [[arms]] 1 ('translate' on goal2d), unknown algorithm 'tdd3': did you mean 'td3'?",
    ),
    "augmentation of another task": (
        HEAD + ARM.replace("goal2d/translate", "panda/translate-goal"),
        ": in [[arms]] 1 ('translate-goal' on goal2d), augmentation 'panda/translate-goal' is for panda-*",
    ),
    "a quadrant of nothing": (
        HEAD.replace("goal2d", "ant") + '[[arms]]\ntrain_goals = "quadrant"',
        ": in [[arms]] 1 ('none' on ant), ant has no goals called 'quadrant'",
    ),
    "a mixture misspelt": (
        HEAD + ARM + 'mixture = "1-5"',
        ": in [[arms]] 1 ('translate' on goal2d), 'mixture' must read augmented:observed, as in '1:5'",
    ),
    "a mixture of nothing": (HEAD + ARM + 'mixture = "0:5"', "'mixture' must read augmented:observed"),
    "a mixture without augmentation": (
        HEAD + '[[arms]]\nmixture = "1:1"',
        ": in [[arms]] 1, 'mixture' needs an 'augmentation'",
    ),
    "a mixture and a ratio": (
        HEAD + ARM + 'mixture = "1:1"\nratio = 3',
        ": in [[arms]] 1, 'mixture' says 'ratio' too: leave one of them out",
    ),
    "a total of nothing": (
        HEAD + ARM + 'mixture = "1:1"\ntotal = 0',
        ": in [[arms]] 1, 'total' must be a number above 0",
    ),
    "a total alone": (HEAD + ARM + "total = 3", ": in [[arms]] 1, 'total' needs a 'mixture'"),
    "p without augmentation": (HEAD + "[[arms]]\np = 0.1", ": in [[arms]] 1, 'p' needs an 'augmentation'"),
    "p of one that has none": (HEAD + ARM + "p = 0.1", "'goal2d/translate' takes no 'p'"),
    "p twice": (
        HEAD + PROXIMAL.replace("proximal", "proximal(0.1)") + "p = 0.2",
        "'goal2d/translate-proximal(0.1)' takes no 'p' beside its own",
    ),
    "p missing": (HEAD + PROXIMAL, "goal2d/translate-proximal needs p"),
    "p above 1": (HEAD + PROXIMAL + "p = 2", "p must lie in [0, 1], not 2"),
    "a ratio without augmentation": (
        HEAD + "[[arms]]\nratio = 2",
        ": in [[arms]] 1, 'ratio' needs an 'augmentation'",
    ),
    "a name with an unknown field": (
        HEAD + ARM + 'name = "m {rato}"\nratio = [1, 2]',
        ": in [[arms]] 1, the name 'm {rato}' can hold {ratio} alone",
    ),
    "a name with a field of a field": (
        HEAD + ARM + 'name = "m {ratio.x}"\nratio = [1, 2]\nbatch_size = [1, 2]',
        ": in [[arms]] 1, the name 'm {ratio.x}' can hold {ratio} and {batch_size} alone",
    ),
    "a name with an item of a field": (
        HEAD + ARM + 'name = "{ratio[a]}"\nratio = [1, 2]',
        "can hold {ratio} al",
    ),
    "a name with half a field": (HEAD + ARM + 'name = "m {ratio"\nratio = [1, 2]', "can hold {ratio} alone"),
    "a name without axes": (
        HEAD + ARM + 'name = "m {ratio}"\nratio = 1',
        ": in [[arms]] 1, the name 'm {ratio}' has nothing to fill in: nothing here is a list",
    ),
    "a panel of a ratio": (
        HEAD + ARM + 'panel = "{ratio}"\nratio = [1, 2]',
        ": in [[arms]] 1, the panel '{ratio}' can hold {task} alone",
    ),
    "a negative ratio": (
        HEAD + ARM + "ratio = -1",
        ": in [[arms]] 1 ('translate' on goal2d), ratio must be 0 or more, not -1",
    ),
    "no batch": (
        HEAD + ARM + "batch_factor = 0",
        ": in [[arms]] 1, 'batch_factor' must be a whole number of at least 1",
    ),
    "half an environment": (
        HEAD + ARM + "policy_data = 1.5",
        ": in [[arms]] 1 ('translate' on goal2d), policy_data 1.5 times environments 1 must be whole",
    ),
    "random steps alone": (
        HEAD.replace("12_000", "1_000") + ARM,
        "random_steps 10000 leave no update in 1000",
    ),
    "an axis of all": (
        HEAD + "[settings]\nratio = [1, 2]\n" + ARM,
        ": in [settings], 'ratio' is a list, which makes arms: say it in [[arms]]",
    ),
    "a name of all": (
        HEAD + '[settings]\nname = "x"\n' + ARM,
        ": in [settings], 'name' is for one arm: say it in [[arms]]",
    ),
    "an axis of the quick size": (
        HEAD + ARM + QUICK + "settings = { ratio = [1] }",
        ": in [quick.settings], 'ratio' is a list, which makes arms: say it in [[arms]]",
    ),
    "no chances": (CHANCES + "chances = []", ": a study needs [[chances]]"),
    "unknown key of a chance": (
        CHANCES + CHANCE + "papr = 1",
        ": in [[chances]] 1, unknown key 'papr': did you mean 'paper'?",
    ),
    "no samples": (
        CHANCES.replace("1000", "0") + CHANCE,
        ": 'samples' must be a whole number of at least 1",
    ),
    "a chance above 1": (
        CHANCES + CHANCE.replace("0.1", "7"),
        ": in [[chances]] 1, 'paper' must be a number of at most 1",
    ),
    "a chance of an unknown task": (
        CHANCES + CHANCE + CHANCE.replace('"goal2d"', '"goal3d"'),
        ": in [[chances]] 2, unknown environment 'goal3d': did you mean 'goal2d'?",
    ),
    "a chance of an unknown augmentation": (
        CHANCES + CHANCE.replace("/translate", "/tranlate"),
        ": in [[chances]] 1, unknown augmentation 'goal2d/tranlate': did you mean 'goal2d/translate'?",
    ),
    "a chance without goals": (
        CHANCES + CHANCE.replace('"goal2d"', '"ant"').replace("goal2d/translate", "ant/rotate"),
        ": in [[chances]] 1, ant has no goals to relabel",
    ),
    "a chance of hindsight": (
        CHANCES + CHANCE.replace('"goal2d"', '"panda-push"').replace("goal2d/translate", "panda/hindsight"),
        ": in [[chances]] 1, 'panda/hindsight' reads episodes",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_study_is_one_line_that_names_file_table_and_key(case, tmp_path):
    text, said = BAD[case]
    path = study_of(tmp_path, text)
    with pytest.raises(UserError) as refusal:
        arms_in(path)
    message = str(refusal.value)
    assert message.startswith(str(path))
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (Size(quick=True), ": there is no [quick] size of this study"),
        (Size(agents=0), "agents must be at least 1, not 0"),
        (Size(steps=0), "steps must be at least 1, not 0"),
        (Size(steps=-4), "steps must be at least 1, not -4"),
    ],
)
def test_a_size_that_cannot_be_is_refused(size, said, tmp_path):
    with pytest.raises(UserError, match=said.replace("[", r"\[")):
        arms_in(study_of(tmp_path, HEAD + ARM), size)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("good.toml bad.toml", "bad.toml: in [[arms]] 1, unknown key 'ratoi': did you mean 'ratio'?"),
        ("good.toml chances.toml", "chances.toml: in [[chances]] 1, unknown environment 'goal3d'"),
        ("good.toml nowhere.toml", "cannot read nowhere.toml: No such file or directory"),
        ("good.toml .", "cannot read .: Is a directory"),
        ("good.toml --quick", "good.toml: there is no [quick] size of this study"),
        ("good.toml --steps 0", "steps must be at least 1, not 0"),
        (
            "good.toml --steps 99",
            "good.toml: in [[arms]] 1 ('translate' on goal2d), random_steps 10000 leave",
        ),
        ("good.toml --only translat", "good.toml: unknown arm or task 'translat': did you mean 'translate'?"),
        ("chances.toml --only goal2d", "chances.toml holds probabilities: it has no arms for --only"),
        ("good.toml --jobs 0", "jobs must be at least 1, not 0"),
        ("good.toml below/good.toml", "two of these studies have the same name, and would share a folder"),
        ("", "augury study run needs a FILE"),
    ],
)
def test_a_command_with_a_bad_study_writes_nothing(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("good.toml").write_text(HEAD + ARM)
    Path("bad.toml").write_text(HEAD + ARM + "ratoi = 3")
    Path("chances.toml").write_text(CHANCES + CHANCE.replace('"goal2d"', '"goal3d"'))
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SystemExit) as leaving:
        main(["study", "run", *arguments.split()])
    assert leaving.value.code == 2
    told = capsys.readouterr().err
    assert told.startswith("augury: ")
    assert said in told
    assert told.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


def written(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name} = {written(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(written, value)) + "]"
    return repr(value) if isinstance(value, float) else json.dumps(value)


WORDS = st.text(string.ascii_letters + string.digits + " .:/-_(){}[]!αβ×無'", max_size=8)
PLAIN = st.one_of(WORDS, st.integers(-3, 9), st.floats(width=16), st.booleans())
VALUES = st.one_of(PLAIN, st.lists(PLAIN, max_size=3), st.dictionaries(st.sampled_from("abc"), PLAIN))

KEYS = {
    "top": Study,
    "settings": Written,
    "arms": Written,
    "quick": Quick,
    "claims": Claim,
}


@st.composite
def anything(draw) -> tuple[str, str, Any]:
    """A table, a key that it has or has not, and a value."""
    table = draw(st.sampled_from([*KEYS]))
    known = [field.name for field in msgspec.structs.fields(KEYS[table])]
    return table, draw(st.sampled_from([*known, "other"])), draw(VALUES)


@settings(max_examples=150, deadline=None)
@given(said=anything())
@example(said=("arms", "name", "{"))
@example(said=("arms", "ratio", [math.inf, 1]))
@example(said=("arms", "hidden", [[8], [8, 8]]))
@example(said=("claims", "tasks", ["goal2d"]))
@example(said=("top", "claims", []))
def test_whatever_a_file_says_it_is_refused_in_one_line_or_makes_arms(said, tmp_path_factory):
    table, key, value = said
    whole: dict[str, Any] = {
        "title": "T",
        "task": "goal2d",
        "agents": 1,
        "steps": 12_000,
        "settings": {},
        "arms": [{"name": "none"}, {"augmentation": "goal2d/translate"}],
        "quick": {"agents": 1, "steps": 20_000},
        "claims": [{"says": "s", "better": "translate", "than": "none"}],
    }
    place = whole if table == "top" else whole[table]
    (place[-1] if isinstance(place, list) else place)[key] = value
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("\n".join(f"{name} = {written(each)}" for name, each in whole.items()))
    refusal = ""
    try:
        arms = arms_in(path)
        assert len({one.folder for one in arms}) == len(arms) > 0
    except UserError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert not refusal or refusal.startswith(str(path))


# What files come to


def test_a_list_makes_an_arm_of_each_of_its_values(tmp_path):
    found = arms_in(
        study_of(
            tmp_path,
            HEAD + "[[arms]]\npolicy_data = [1, 2]\n" + ARM + "ratio = [1, 0.5, inf]\nbatch_factor = [1, 2]",
        )
    )
    assert [one.name for one in found] == [
        "×1 policy data",
        "×2 policy data",
        "translate, m = 1, ×1 batch",
        "translate, m = 1, ×2 batch",
        "translate, m = 0.5, ×1 batch",
        "translate, m = 0.5, ×2 batch",
        "translate, m = inf, ×1 batch",
        "translate, m = inf, ×2 batch",
    ]
    assert [one.arm.policy_data for one in found[:2]] == [1, 2]
    assert [(one.arm.ratio, one.arm.batch_size) for one in found[2:]] == [
        (ratio, size) for ratio in (1, 0.5, math.inf) for size in (128, 256)
    ]
    assert [str(one.folder) for one in found[1:3]] == [
        "goal2d/x2-policy-data",
        "goal2d/translate-m-1-x1-batch",
    ]
    assert len({one.folder for one in found}) == len(found)


def test_widths_of_layers_are_a_list_but_no_axis(tmp_path):
    one, *others = arms_in(study_of(tmp_path, HEAD + ARM + "hidden = [8, 8]"))
    assert (one.arm.hidden, others) == ((8, 8), [])
    several = arms_in(study_of(tmp_path, HEAD + ARM + "hidden = [[8], [8, 8]]"))
    assert [each.arm.hidden for each in several] == [(8,), (8, 8)]
    assert [each.name for each in several] == ["translate, hidden = [8]", "translate, hidden = [8, 8]"]


def test_names_are_filled_in_and_else_made_from_what_differs(tmp_path):
    text = (
        HEAD
        + "[[arms]]\n"
        + ARM
        + ARM
        + 'name = "{ratio} copies"\nratio = [2, 2.5]\n'
        + ARM
        + 'name = "called"\nratio = [3, 4]\n'
        + ARM
        + 'ratio = [5, 6]\nupdate_ratio = "ratio"\n'
        + PROXIMAL
        + "p = [0, 0.25]"
    )
    assert [one.name for one in arms_in(study_of(tmp_path, text))] == [
        "none",
        "translate",
        "2 copies",
        "2.5 copies",
        "called, m = 3",
        "called, m = 4",
        "translate, m = α = 5",
        "translate, m = α = 6",
        "translate-proximal, p = 0",
        "translate-proximal, p = 0.25",
    ]


def test_tasks_are_panels_unless_the_file_says_otherwise(tmp_path):
    head = HEAD.replace('"goal2d"', '["swimmer", "walker2d"]')
    text = head + '[[arms]]\n[[arms]]\naugmentation = "{task}/reflect"\npanel = "mirrored {task}"'
    found = arms_in(study_of(tmp_path, text))
    assert [(one.task, one.arm.environment, one.arm.augmentation) for one in found] == [
        ("swimmer", "swimmer", None),
        ("mirrored swimmer", "swimmer", "swimmer/reflect"),
        ("walker2d", "walker2d", None),
        ("mirrored walker2d", "walker2d", "walker2d/reflect"),
    ]
    assert [str(one.folder) for one in found[:2]] == ["swimmer/none", "mirrored-swimmer/reflect"]


def test_an_arm_overrides_the_settings_and_the_quick_size_overrides_both(tmp_path):
    text = (
        HEAD
        + "[settings]\nbatch_size = 32\nseed = 5\ncollect = 8\n"
        + ARM
        + "batch_size = 64\n"
        + QUICK
        + "settings = { batch_size = 16, seed = 7 }"
    )
    path = study_of(tmp_path, text)

    def said(size: Size) -> tuple[int, ...]:
        arm = arms_in(path, size)[0].arm
        return arm.batch_size, arm.seed, arm.collect, arm.agents, arm.steps

    assert said(Size()) == (64, 5, 8, 2, 12_000)
    assert said(Size(agents=3, steps=15_000)) == (64, 5, 8, 3, 15_000)
    assert said(Size(quick=True)) == (16, 7, 8, 2, 20_000)
    assert said(Size(quick=True, agents=4)) == (16, 7, 8, 4, 20_000)


def test_what_is_not_said_is_the_tasks_own(tmp_path):
    text = HEAD.replace("steps = 12_000\n", "").replace('"goal2d"', json.dumps(PANDA)) + "[[arms]]"
    arms = {one.task: one.arm for one in arms_in(study_of(tmp_path, text))}
    assert {task: arm.steps for task, arm in arms.items()} == {
        "panda-push": 600_000,
        "panda-slide": 1_000_000,
        "panda-pick-and-place": 1_500_000,
        "panda-flip": 1_000_000,
    }
    assert {arm.algorithm for arm in arms.values()} == {"ddpg"}


def test_ratios_of_the_settings_are_for_arms_with_an_augmentation(tmp_path):
    shared = "[settings]\nratio = 4\nupdate_ratio = 2\n"
    none, translate = arms_in(study_of(tmp_path, HEAD + shared + "[[arms]]\n" + ARM))
    assert (none.arm.augmentation, none.arm.ratio, none.arm.update_ratio) == (None, 0, 0)
    assert (translate.arm.ratio, translate.arm.update_ratio) == (4, 2)
    mixed = "[settings]\nmixture = '1:1'\np = 0.5\n"
    none, proximal = arms_in(study_of(tmp_path, HEAD + mixed + "[[arms]]\n" + PROXIMAL))
    assert (none.arm.policy_data, none.arm.ratio) == (1, 0)
    assert (proximal.arm.policy_data, proximal.arm.ratio) == (1, 1)


def test_a_mixture_is_of_so_many_times_the_data(tmp_path):
    text = HEAD + "[settings]\nenvironments = 3\n" + ARM + 'mixture = ["1:5", "1:2", "2:1"]\ntotal = 4'
    arms = [one.arm for one in arms_in(study_of(tmp_path, text))]
    assert [arm.policy_data for arm in arms] == pytest.approx([10 / 3, 8 / 3, 4 / 3])
    assert [arm.ratio for arm in arms] == [arm.update_ratio for arm in arms] == [1 / 5, 1 / 2, 2]
    for arm in arms:
        assert arm.policy_data * (1 + (arm.ratio or 0)) == pytest.approx(4)


def test_a_parameter_is_kept_to_its_last_digit(tmp_path):
    arms = arms_in(study_of(tmp_path, HEAD + PROXIMAL + "p = [0, 0.123456789]"))
    assert [one.arm.augmentation for one in arms] == [
        "goal2d/translate-proximal(0)",
        "goal2d/translate-proximal(0.123456789)",
    ]


def test_names_as_folders():
    assert slug("×2 via translate") == "x2-via-translate"
    assert slug("m = α = 0.25") == "m-alpha-0.25"
    assert slug("wind = -0.1") == "wind-minus0.1"
    assert slug("wind=-0.1") != slug("wind=0.1")
    assert slug("family/point-1") == "family-point-1"
    assert slug("proximal(0), 1:5") == "proximal-0-1-5"
    assert slug("../../etc") == "etc"


# The paper's own files


def files() -> list[Path]:
    return sorted(PAPER.glob("*.toml"))


def paper(name: str, **size: Any) -> dict[str, list[StudyArm]]:
    """A study's arms by panel."""
    found = arms_in(PAPER / f"{name}.toml", Size(**size))
    return {
        task: [one for one in found if one.task == task] for task in dict.fromkeys(one.task for one in found)
    }


def every_arm(*names: str) -> Iterator[StudyArm]:
    for name in names:
        for arms in paper(name).values():
            yield from arms


def test_every_figure_of_the_paper_has_a_study():
    assert {path.stem for path in files()} == {
        "probabilities",
        *(f"figure-{number}" for number in (1, 3, 6, 9, 10, 11, 16, 17)),
        *(f"figure-{number}-{family}" for number in (4, 5, 12, 13, 14) for family in ("goal2d", "panda")),
    }


@pytest.mark.parametrize("quick", [False, True], ids=["full", "quick"])
@pytest.mark.parametrize("path", sorted(STUDIES.rglob("*.toml")), ids=lambda path: path.stem)
def test_every_study_loads_and_builds(path, quick):
    study = read(path)
    if isinstance(study, ChanceStudy):
        return chances.check(study, str(path))
    assert path.parent != PAPER or study.figure == path.stem.split("-")[1]
    assert study.claims
    assert study.about
    arms = arms_of(study, str(path), Size(quick=quick))
    assert sorted(place for fleet in fleets_of([one.arm for one in arms]) for place in fleet) == [
        *range(len(arms))
    ]
    for one in arms:
        program: Any = program_of(one.arm)
        assert one.arm.evaluation_rounds[-1] == one.arm.rounds
        assert program.replay.batch_size >= one.arm.batch_size
    assert {one.arm.agents for one in arms} == {study.quick.agents if quick and study.quick else study.agents}
    return None


@pytest.mark.parametrize("place", sorted(RESULTS.rglob("study.json")), ids=lambda place: place.parent.name)
def test_results_are_those_of_their_study(place):
    """A file that has changed since it was run is to be run again."""
    (path,) = STUDIES.rglob(f"{place.parent.name}.toml")
    store = Store(place.parent)
    assert bool(store.record().missing) == (place.parent.name in RUN_IN_PART)
    finished = [one for one in arms_in(path) if store.is_finished(one)]
    assert finished
    for one in finished:
        assert read_run(store.place(one))["asked"] == json.loads(json.dumps(one.arm.described()))


@pytest.mark.parametrize("path", files(), ids=lambda path: path.stem)
def test_every_study_of_the_paper_has_its_seeds_and_a_laptops_size(path):
    study = read(path)
    if isinstance(study, ChanceStudy):
        assert study.samples == 10_000_000
        return
    assert study.agents == (50 if study.task == "goal2d" else 10)
    assert study.quick is not None
    assert study.quick.agents < study.agents
    longest = max(one.arm.steps for one in arms_in(path))
    assert study.quick.steps <= longest / 5


def test_panda_arms_train_as_the_paper_says():
    """Section 5's table, where a figure does not say otherwise."""
    for one in every_arm(
        "figure-3", "figure-4-panda", "figure-5-panda", "figure-12-panda", "figure-13-panda"
    ):
        arm = one.arm
        task = arm.environment.removesuffix("-quadrant")
        wide = task in ("panda-flip", "panda-pick-and-place")
        assert (arm.algorithm, arm.hidden, arm.batch_size) == ("ddpg", (256, 256, 256), 512 if wide else 256)
        assert (arm.learning_rate, arm.discount, arm.target_rate) == (1e-3, 0.95, 0.05)
        assert (arm.random_action_probability, arm.exploration_noise, arm.random_steps) == (0.3, 0.2, 1_000)
        assert (arm.evaluate_every, arm.evaluation_episodes, arm.buffer_size) == (10_000, 80, 1_000_000)
        assert arm.updates / arm.collect == 1 / 2


def test_goal2d_and_locomotion_arms_train_as_the_authors_did():
    names = ("figure-1", "figure-5-goal2d", "figure-11", "figure-13-goal2d", "figure-14-goal2d")
    for arm in (one.arm for one in every_arm(*names)):
        assert (arm.algorithm, arm.hidden, arm.batch_size, arm.steps) == ("td3", (64, 64), 128, 200_000)
        assert (arm.collect, arm.updates, arm.random_steps, arm.exploration_noise) == (64, 32, 10_000, 0.1)
        assert (arm.learning_rate, arm.discount, arm.target_rate) == (1e-3, 0.99, 0.005)
    for arm in (one.arm for one in every_arm("figure-16", "figure-17")):
        assert (arm.algorithm, arm.hidden, arm.batch_size, arm.steps) == ("td3", (256, 256), 256, 1_000_000)
        assert arm.updates == arm.collect
        assert arm.learning_rate == {"humanoid": 3e-4, "swimmer": 1e-4}.get(arm.environment, 1e-3)
        assert arm.discount == (0.9999 if arm.environment == "swimmer" else 0.99)
        assert (arm.evaluate_every, arm.evaluation_episodes) == (10_000, 10)


def test_figure_1_has_more_data_of_both_kinds():
    (arms,) = paper("figure-1").values()
    assert {one.name: (one.arm.policy_data, one.arm.augmentation, one.arm.ratio) for one in arms} == {
        "none": (1, None, 0),
        "×2 policy data": (2, None, 0),
        "×4 policy data": (4, None, 0),
        "×8 policy data": (8, None, 0),
        "×2 via rotate": (1, "goal2d/rotate", 1),
        "×2 via translate": (1, "goal2d/translate", 1),
    }
    study = read(PAPER / "figure-3.toml")
    assert isinstance(study, Study)
    assert study.x_axis == "updates"
    assert paper("figure-3").keys() == set(PANDA)


@pytest.mark.parametrize("name", ["figure-4-goal2d", "figure-4-panda", "figure-12-goal2d", "figure-12-panda"])
def test_figures_4_and_12_mix_augmented_with_observed_data(name):
    for arms in paper(name).values():
        found = {one.name: one.arm for one in arms}
        arm = found["proximal(0), 1:5"]
        assert arm.policy_data == pytest.approx(5 / 3)
        assert arm.ratio == arm.update_ratio == 1 / 5
        assert str(arm.augmentation).endswith("-proximal(0)")
        for mixture, observed in (("1:2", 4 / 3), ("1:1", 1)):
            arm = found[f"proximal(0), {mixture}"]
            assert arm.policy_data == pytest.approx(observed)
            assert arm.policy_data * (1 + (arm.ratio or 0)) == pytest.approx(2)
        assert found["none"].augmentation is None
        for arm in found.values():
            assert arm.updates / arm.collect == 1 / 2


@pytest.mark.parametrize("number", [5, 13])
def test_figures_5_and_13_vary_the_reward_density(number):
    expected = {"goal2d": [0, 0.01, 0.05, 0.1, 0.25], "panda": [0, 0.05, 0.1, 0.25]}
    for family, shares in expected.items():
        for arms in paper(f"figure-{number}-{family}").values():
            own = [one.arm for one in arms if one.arm.augmentation is not None]
            name = "goal2d/translate-proximal" if family == "goal2d" else "panda/translate-goal-proximal"
            assert [arm.augmentation for arm in own] == [f"{name}({p:g})" for p in shares]
            assert {(arm.ratio, arm.update_ratio) for arm in own} == {(1, 1)}


@pytest.mark.parametrize("name", ["figure-6", "figure-14-panda"])
def test_figures_6_and_14_lower_the_augmented_replay_ratio(name):
    panels = paper(name)
    assert panels.keys() == set(PANDA)
    for arms in panels.values():
        assert [one.arm.ratio for one in arms] == [1, 2, 4, 8, 16]
        for arm in (one.arm for one in arms):
            assert arm.random_action_probability == 0
            assert arm.updates == arm.collect == 1
            assert arm.update_ratio == 2
        betas = [one.arm.updates / one.arm.collect / (one.arm.ratio or 0) for one in arms]
        assert betas == [1, 0.5, 0.25, 0.125, 0.0625]


def test_figure_9_raises_the_update_ratio_and_keeps_the_replay_ratio():
    for arms in paper("figure-9").values():
        raised, (other,) = [one.arm for one in arms[:5]], [one.arm for one in arms[5:]]
        assert [arm.ratio for arm in raised] == [arm.update_ratio for arm in raised] == [1, 2, 4, 8, 16]
        assert (other.ratio, other.update_ratio) == (16, 2)
        for arm in (*raised, other):
            assert (arm.random_action_probability, arm.updates, arm.collect) == (0, 1, 1)


def test_figure_10_enlarges_the_batch_alone():
    for task, arms in paper("figure-10").items():
        plain = ENVIRONMENTS[task].training["batch_size"]
        assert [one.arm.batch_size for one in arms] == [plain, 2 * plain, 4 * plain, 8 * plain]
        assert {(one.arm.augmentation, one.arm.policy_data) for one in arms} == {(None, 1)}


@pytest.mark.parametrize("name", ["figure-11", "figure-14-goal2d"])
def test_figures_11_and_14_have_two_augmentations_of_goal2d(name):
    panels = paper(name)
    assert list(panels) == ["translate", "rotate"]
    for panel, arms in panels.items():
        assert [one.arm.ratio for one in arms] == [1, 2, 4, 8]
        assert {(one.arm.augmentation, one.arm.update_ratio) for one in arms} == {(f"goal2d/{panel}", 1)}


@pytest.mark.parametrize("number", [12, 13, 14])
def test_generalization_trains_on_a_quadrant_and_evaluates_on_all(number):
    for one in every_arm(f"figure-{number}-goal2d", f"figure-{number}-panda"):
        task = one.arm.evaluation_environment
        assert task in ("goal2d", *PANDA)
        assert one.arm.environment == f"{task}-quadrant"
    plain = [path.stem for path in files() if path.stem.split("-")[1:2] not in (["12"], ["13"], ["14"])]
    for one in every_arm(*plain):
        assert one.arm.environment == one.arm.evaluation_environment


def test_figure_12_relabels_from_the_quadrant_in_an_arm_of_its_own():
    for arms in paper("figure-12-panda").values():
        found = {one.name: one.arm.augmentation for one in arms}
        assert found["translate-goal"] == "panda/translate-goal"
        assert found["translate-goal in the quadrant"] == "panda/translate-goal-quadrant"


def test_figures_16_and_17_are_about_locomotion():
    reflected, turned = paper("figure-16"), paper("figure-17")
    assert (list(reflected), list(turned)) == (
        ["swimmer", "walker2d", "ant", "humanoid"],
        ["ant", "humanoid"],
    )
    for task, (none, *arms) in reflected.items():
        assert none.arm.augmentation is None
        assert {(one.arm.augmentation, one.arm.update_ratio) for one in arms} == {(f"{task}/reflect", 0.25)}
        assert [one.arm.ratio for one in arms] == [0.25, 0.5, 1]
    for task, (none, *arms) in turned.items():
        assert none.arm.augmentation is None
        assert {(one.arm.augmentation, one.arm.update_ratio) for one in arms} == {(f"{task}/rotate", 1)}
        assert [one.arm.ratio for one in arms] == [1, 2, 4]


def test_probabilities_are_of_every_goal_task_and_tell_the_papers_misprint():
    study = read(PAPER / "probabilities.toml")
    assert isinstance(study, ChanceStudy)
    assert {chance.task: chance.paper for chance in study.chances} == {
        "panda-push": 0.075,
        "panda-slide": 0.075,
        "panda-pick-and-place": 0.04,
        "panda-flip": 0.04,
        "goal2d": 0.019,
    }
    (goal2d,) = [chance for chance in study.chances if chance.task == "goal2d"]
    assert "misprint" in goal2d.note
