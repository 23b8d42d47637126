"""A study one of whose environments is bad: what has finished stays, and a line says what was wrong."""

import json

import pytest

from augury.cli import main
from augury.runs import results

pytestmark = pytest.mark.slow

HERE = "tests.envs.adapters.troubled"
GOOD, BAD = f"{HERE}:walk", f"{HERE}:unrewarding"
STUDY = f"""
title = "Bad"
task = ["{GOOD}", "{BAD}"]
agents = 1
steps = 40

[settings]
algorithm = "ddpg"
random_steps = 10
batch_size = 16
hidden = [8]
evaluate_every = 40
evaluation_episodes = 2

[[arms]]
"""


def test_results_stay_when_a_bad_environment_stops_a_later_arm(tmp_path, capsys):
    file = tmp_path / "bad.toml"
    file.write_text(STUDY)
    with pytest.raises(SystemExit) as leaving:
        main(["study", "run", str(file), "--out", str(tmp_path)])
    out, said = capsys.readouterr()
    assert leaving.value.code == 1
    assert said == "augury: some arms failed: the same command tries them again\n"
    (line,) = (line for line in out.splitlines() if "failed" in line)
    assert "unrewarding, in step 3 of the episode" in line
    assert "reward is nan" in line

    main(["study", "status", str(tmp_path / "bad"), "--json"])
    good, bad = json.loads(capsys.readouterr().out)
    assert (good["task"], good["state"]) == (GOOD, "finished")
    assert (bad["task"], bad["state"]) == (BAD, "failed")
    assert bad["why"] in line
    (folder,) = (path.parent for path in tmp_path.glob(f"bad/arms/*/*/{results.EVALUATIONS}"))
    assert results.read(folder).curves().shape == (1, 1)

    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(SystemExit):
        main(["study", "run", str(file), "--out", str(tmp_path)])
    assert "2 arms, 1 finished, 1 fleets to train" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in folder.iterdir()} == before
