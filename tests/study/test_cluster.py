"""Fleets on a Ray cluster of several nodes, all on this machine."""

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from augury.errors import UserError
from augury.runs import arrays, checkpoints, results
from augury.study.arms import Size, arms_of
from augury.study.cluster import RESTARTS, Cluster, needs_of
from augury.study.local import Local
from augury.study.runner import Died, jobs_of, run
from augury.study.schema import read
from augury.study.store import FAILURE, PROGRESS, Store
from augury.study.worker import LOG

ray = pytest.importorskip("ray")
import psutil  # noqa: E402
from ray.cluster_utils import Cluster as Nodes  # noqa: E402

# Ray forks to start the nodes of its test cluster; what runs in between touches nothing of JAX.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings(r"ignore:os.fork\(\) was called:RuntimeWarning"),
]

STUDY = """
title = "Tiny"
task = "goal2d"
agents = 2
steps = 20_000
[settings]
random_steps = 2_000
evaluate_every = 1_000
evaluation_episodes = 5
[[arms]]
name = "small"
batch_size = 64
[[arms]]
name = "smaller"
batch_size = 32
"""
CHECKPOINTS = 0.2
SMALL = {"object_store_memory": 80_000_000, "include_dashboard": False}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    terminated = signal.getsignal(signal.SIGTERM)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_worker_niceness", "0")
        patch.setenv("RAY_health_check_period_ms", "500")  # so that a node's death is soon noticed
        patch.setenv("RAY_TMPDIR", "/tmp")  # sockets have short names
        patch.setenv("TMPDIR", str(tmp_path_factory.mktemp("nodes")))
        nodes = Nodes(initialize_head=True, head_node_args={"num_cpus": 0, **SMALL})
        patch.setenv("RAY_ADDRESS", nodes.address)
        yield nodes
        nodes.shutdown()
    signal.signal(signal.SIGTERM, terminated)


@pytest.fixture
def two_nodes(cluster):
    """The cluster with two nodes that fleets can run on, each with room for one."""
    while len(cluster.worker_nodes) < 2:
        cluster.add_node(num_cpus=1, **SMALL)
    return cluster


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """What this machine makes of the study."""
    store, jobs = begun(tmp_path_factory.mktemp("local"))
    assert run(jobs, Local(2), lambda event: None)
    return evaluations(store)


def begun(folder):
    """A study's store and its fleets: one for each of its two arms."""
    source = folder / "tiny.toml"
    source.write_text(STUDY)
    study = read(source)
    arms = arms_of(study, str(source), Size())
    store = Store(folder)
    store.begin(study, source.stem, source.read_bytes(), arms, "augury study run tiny.toml")
    jobs = jobs_of(store, arms)
    assert [[one.name for one in job.arms] for job in jobs] == [["small"], ["smaller"]]
    return store, jobs


def steps_in(job):
    """Of the checkpoint that has arrived."""
    path = job.folder / checkpoints.NAME
    return int(arrays.remarks(path)["rounds"]) * job.arms[0].arm.round_steps if path.exists() else 0


def kill(cluster, node):
    """End a node and all that runs on it, at once."""
    (raylet,) = node.all_processes["raylet"]
    running = psutil.Process(raylet.process.pid).children(recursive=True)
    cluster.remove_node(node, allow_graceful=False)
    for process in running:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def evaluations(store):
    return {one.name: one.result.evaluations for one in store.record().finished}


def assert_identical(found, wanted):
    assert found.keys() == wanted.keys()
    for name, own in wanted.items():
        assert found[name].keys() == own.keys()
        for quantity, values in own.items():
            np.testing.assert_array_equal(found[name][quantity], values, strict=True)


class Listening(Cluster):
    """A cluster that passes on what is told in the moment it arrives."""

    def __init__(self, hear):
        super().__init__(CHECKPOINTS)
        self.hear = hear

    def execute(self, job, tell):
        def both(told):
            self.hear(job, told)
            tell(told)

        super().execute(job, both)


def test_a_cluster_makes_the_results_that_this_machine_makes(two_nodes, tmp_path, expected):
    store, jobs = begun(tmp_path)
    events = []
    with Cluster(CHECKPOINTS) as executor:
        assert executor.at_once == 2
        assert run(jobs, executor, events.append)
    assert_identical(evaluations(store), expected)
    assert not list((tmp_path / "fleets").iterdir())
    for job in jobs:
        own = [event.told for event in events if event.job is job and event.kind == "progress"]
        steps = [told["steps"] for told in own if told["scores"] is not None]
        assert steps == list(expected[job.arms[0].name]["steps"])
        assert (store.place(job.arms[0]) / results.POLICIES).exists()
    assert not ray.is_initialized()


def test_a_fleet_goes_on_from_its_checkpoint_when_its_node_dies(two_nodes, tmp_path, expected):
    spare, doomed = two_nodes.worker_nodes
    two_nodes.remove_node(spare)  # so that it is known where the fleet will be
    store, jobs = begun(tmp_path)
    before, after, saved, shown = [], [], [], []

    def hear(job, told):
        log = job.folder / LOG
        (after if log.exists() and "lost: " in log.read_text() else before).append(told["steps"])
        if not saved and steps_in(job) > job.arms[0].arm.random_steps:
            saved.append(steps_in(job))
            shown.append(json.loads((job.folder / PROGRESS).read_text())["steps"])
            kill(two_nodes, doomed)

    def watch(event):
        if saved and not two_nodes.worker_nodes:
            two_nodes.add_node(num_cpus=1, **SMALL)  # not in `hear`: Ray must do that in the main thread

    with Listening(hear) as executor:
        assert executor.at_once == 1
        assert run(jobs[:1], executor, watch)
    assert before[0] < saved[0] < after[0]
    assert shown[0] in before
    assert after[-1] == jobs[0].steps
    assert_identical(evaluations(store), {"small": expected["small"]})


def test_a_fleet_that_fails_is_reported_and_others_go_on(two_nodes, tmp_path, expected):
    store, jobs = begun(tmp_path)
    broken = jobs[0].folder / checkpoints.NAME
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"")
    events = []
    with Cluster(CHECKPOINTS) as executor:
        assert not run(jobs, executor, events.append)
    (failed,) = [event for event in events if event.kind == "failed"]
    assert failed.job is jobs[0]
    assert failed.why.startswith(f"checkpoint {broken} is damaged")
    assert json.loads((jobs[0].folder / FAILURE).read_text())["why"] == failed.why
    assert "lost: " not in (jobs[0].folder / LOG).read_text()
    assert_identical(evaluations(store), {"smaller": expected["smaller"]})


def test_a_stopped_fleet_keeps_the_checkpoint_that_arrived(two_nodes, tmp_path):
    store, jobs = begun(tmp_path)
    before = set(Path(os.environ["TMPDIR"]).glob("augury-*"))

    def interrupt(event):
        if steps_in(event.job):
            raise KeyboardInterrupt

    with Cluster(CHECKPOINTS) as executor, pytest.raises(KeyboardInterrupt):
        run(jobs[:1], executor, interrupt)
    assert 0 < steps_in(jobs[0]) < jobs[0].steps
    assert not store.record().finished
    assert not store.record().failed
    assert set(Path(os.environ["TMPDIR"]).glob("augury-*")) == before


def test_a_fleet_that_is_lost_again_and_again_is_given_up(tmp_path):
    class Losing(Cluster):
        def _attempt(self, job, tell):
            return "its node is gone"

    job = begun(tmp_path)[1][0]
    job.folder.mkdir(parents=True)
    with pytest.raises(Died, match="its node is gone"):
        Losing().execute(job, print)
    assert (job.folder / LOG).read_text() == "lost: its node is gone\n" * (1 + RESTARTS)


@pytest.mark.parametrize(
    ("nodes", "asked", "expected"),
    [
        ([(4, 0), (64, 0), (64, 0)], (None, None), (64, 0, 2)),
        ([(32, 0), (32, 0), (64, 0)], (None, None), (32, 0, 4)),
        ([(4, 0), (64, 0)], (2, None), (2, 0, 34)),
        ([(0, 0), (64, 8), (64, 8)], (None, None), (8, 1, 16)),
        ([(64, 8)], (None, 2), (16, 2, 4)),
        ([(64, 8)], (32, 1), (32, 1, 2)),
        ([(64, 8)], (None, 0), (64, 0, 1)),
        ([(2, 8)], (None, None), (1, 1, 2)),
    ],
)
def test_a_fleet_takes_its_share_of_a_node(nodes, asked, expected):
    assert needs_of([{"CPU": float(cpus), "GPU": float(gpus)} for cpus, gpus in nodes], *asked) == expected


@pytest.mark.parametrize("asked", [(8, None), (None, 1)])
def test_needs_that_no_node_meets_are_refused(asked):
    with pytest.raises(UserError, match="no node of the Ray cluster has"):
        needs_of([{"CPU": 4.0}, {"CPU": 6.0}], *asked)


def test_without_ray_it_is_said_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(UserError, match=r"^a Ray cluster needs Ray: pip install 'augury\[ray\]'$"):
        Cluster().__enter__()


@pytest.mark.parametrize("address", ["127.0.0.1:{port}", "nonsense"])
def test_without_a_cluster_it_is_said_how_to_start_one(monkeypatch, address):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("RAY_ADDRESS", address.format(port=port))
    with pytest.raises(UserError, match=r"^no Ray cluster was found at [^\n]*: ray start --head$"):
        Cluster().__enter__()
