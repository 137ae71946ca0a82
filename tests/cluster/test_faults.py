"""What happens to a run when its workers, its driver or its user end something."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import pathmix
from pathmix.cluster import ray as cluster
from pathmix.posterior.status import Status
from tests.cluster.nodes import QUIET
from tests.cluster.programs import FEW, Y, walk

pytestmark = QUIET
ROOT = Path(__file__).parents[2]


class Deadly(cluster._Actor):
    """Dies of a path."""

    def compute(self, order, *given):
        if "k=2" in cluster._ray().get_runtime_context().get_task_name():
            os._exit(1)
        return super().compute(order, *given)


def by_label(posterior):
    return {path.label: path for path in posterior.paths}


def test_a_path_that_kills_its_workers_has_a_status(nodes, monkeypatch):
    quiet = by_label(pathmix.SDVI(walk, **FEW).run(0, Y))
    monkeypatch.setattr(cluster, "_Actor", Deadly)
    fit = pathmix.SDVI(walk, executor=pathmix.RayExecutor(2, retries=1), **FEW)
    with pytest.warns(pathmix.PathmixWarning, match=r"'k=2.* failed and carries no weight: ClusterError"):
        found = by_label(fit.run(0, Y))
    assert set(found) == set(quiet)
    for label, path in found.items():
        if "k=2" in label:
            assert path.status is Status.FAILED and "2 workers in turn were lost" in path.message, label
        else:
            assert path.status == quiet[label].status


def started(folder, executor):
    return subprocess.Popen(
        [sys.executable, "-m", "tests.cluster.driver", str(folder), executor],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        start_new_session=True,  # as a terminal does, which then interrupts all of them
    )


def until_training(driver):
    assert driver.stdout.readline() == "trained\n"


def ending(driver):
    out, _ = driver.communicate(timeout=300)
    assert driver.returncode == 0
    return out.splitlines()[-2:]


def test_a_lost_driver_goes_on_with_other_workers(tmp_path):
    quiet = ending(started(tmp_path / "quiet", "threads"))
    driver = started(tmp_path / "run", "ray")
    until_training(driver)
    driver.kill()
    driver.wait()
    assert ending(started(tmp_path / "run", "ray")) == quiet == ["complete", quiet[1]]


def test_ctrl_c_in_a_terminal(tmp_path):
    driver = started(tmp_path, "ray")
    until_training(driver)
    os.killpg(driver.pid, signal.SIGINT)
    assert ending(driver)[0] == "interrupted"
    assert ending(started(tmp_path, "ray"))[0] == "complete"
