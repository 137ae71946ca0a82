"""The runner of the experiments: what is measured once is kept, whatever happens to the rest."""

from types import SimpleNamespace

import pytest

from experiments import runner
from experiments.report import spread, table
from experiments.runner import Experiment, Preset, Results, load


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "RESULTS", tmp_path)


def experiment(run, settings=None, seeds=3):
    preset = Preset(settings or {"steps": 10}, {"ours": seeds, "theirs": 1})
    return Experiment("toy", "A toy", {"full": preset}, run, lambda results: [], lambda *_: None, "none")


def measure(run, cells=None, **options):
    """As `main` does it; returns the cells that were run, the failures and the results."""
    done = []

    def noted(method, seed, settings):
        done.append((method, seed))
        return run(method, seed, settings)

    toy = experiment(noted, **options)
    preset = toy.presets["full"]
    results = runner._earlier(toy, "full", preset.settings, fresh=False)
    failed = runner._run(toy, results, cells or preset.cells)
    return done, failed, results


def seed_squared(method, seed, settings):
    return {"figure": float(seed**2)}


def test_cells_are_run_once():
    done, failed, results = measure(seed_squared)
    assert done == [("ours", 0), ("ours", 1), ("ours", 2), ("theirs", 0)]
    assert failed == []
    assert [cell["figure"] for cell in results.of("ours")] == [0, 1, 4]
    assert measure(seed_squared)[0] == []
    # More seeds are more cells, and the earlier ones stay.
    assert measure(seed_squared, seeds=5)[0] == [("ours", 3), ("ours", 4)]


def test_an_interrupt_keeps_finished_cells():
    def interrupted_at_two(method, seed, settings):
        runner.finished(SimpleNamespace(interrupted=seed == 2))
        return seed_squared(method, seed, settings)

    with pytest.raises(KeyboardInterrupt):
        measure(interrupted_at_two)
    assert measure(seed_squared)[0] == [("ours", 2), ("theirs", 0)]


def test_a_failing_cell_does_not_stop_the_others(capsys):
    def broken_at_one(method, seed, settings):
        return {"figure": 1 / (seed - 1)}

    _, failed, results = measure(broken_at_one)
    assert failed == ["ours, seed 1"]
    assert len(results.cells) == 3
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_processes_that_share_a_file_keep_each_others_cells():
    first, second = (Results("toy", "full", {"steps": 10}, {}) for _ in range(2))
    first.cells["ours/000"] = {"figure": 1.0}
    second.cells["ours/001"] = {"figure": 2.0}
    first.save()
    second.save()
    found = load("toy", "full")
    assert found is not None and list(found.cells) == ["ours/000", "ours/001"]


def test_results_of_other_settings_are_not_mixed_in():
    measure(seed_squared)
    with pytest.raises(SystemExit, match=r"toy\.full\.json was made with other settings"):
        measure(seed_squared, settings={"steps": 20})


def test_unknown_cells_are_named():
    cells = experiment(seed_squared).presets["full"].cells
    assert runner._chosen(cells, ["ours"], [0, 2]) == [("ours", 0), ("ours", 2)]
    with pytest.raises(SystemExit, match=r"does not have 'mine'\. There are: ours, theirs"):
        runner._chosen(cells, ["mine"], None)
    with pytest.raises(SystemExit, match=r"does not have 7\. There are: 0, 1, 2"):
        runner._chosen(cells, None, [7])


def test_a_spread_has_the_standard_deviation_of_a_sample():
    assert spread([1.0, 2.0, 3.0]) == "2.00 ± 1.00"
    assert spread([1_500.0], 1, scale=1_000) == "1.5"
    assert spread([None, None]) == "none"


def test_tables_line_up():
    assert table([("a", "long"), ("bcd", "e")]).split("\n") == [
        "| a   | long |",
        "|-----|------|",
        "| bcd | e    |",
    ]
