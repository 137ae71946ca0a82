"""How runs are judged, and what the page says of them."""

import pytest

from trust import report
from trust.judge import Run, total_variation, worst
from trust.suite import CASES, chosen


def test_total_variation_counts_what_either_side_lacks():
    assert total_variation({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5}) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("facts", "judgement"),
    [
        ({"total_variation": 0.02, "ok": False}, "right"),
        ({"total_variation": 0.2, "ok": False}, "honest"),
        ({"total_variation": 0.2, "ok": True}, "WRONG OK"),
        ({"total_variation": float("nan"), "ok": True}, "WRONG OK"),
        ({"failure": "not done"}, "failed"),
    ],
)
def test_judgements(facts, judgement):
    assert Run("a", 0, 1.0, **facts).judgement == judgement


def test_a_wrong_ok_stands_for_its_case():
    runs = [Run("a", seed, 1.0, total_variation=0.1 * seed, ok=seed == 1) for seed in range(3)]
    assert worst(runs).seed == 1


def test_only_an_ok_that_matters_is_suspicious():
    assert Run("a", 0, 1.0, total_variation=0, z=-5, log_evidence_gap=-0.1, ok=True).suspicious
    assert not Run("a", 0, 1.0, total_variation=0, z=-5, log_evidence_gap=-0.1, ok=False).suspicious
    assert not Run("a", 0, 1.0, total_variation=0, z=-5, log_evidence_gap=-0.01, ok=True).suspicious


def test_the_page(tmp_path):
    case, other = CASES["coin (numpyro)"], CASES["coin (pyro)"]
    good = [Run(case.title, seed, 2.0, total_variation=0.01, z=0.5, ok=True) for seed in range(2)]
    bad = [Run(other.title, seed, 3.0, total_variation=0.3, z=9.0, verdict="Do not.\n") for seed in range(2)]
    report.write([(case, good), (other, bad)], tmp_path / "page.md")
    text = (tmp_path / "page.md").read_text()
    assert "2 cases, by the worst of their seeds: 1 right, 1 honest, 0 WRONG OK, 0 failed." in text
    assert "- coin (pyro)\n  - seed 0, 1: Do not." in text


def test_words_choose_cases():
    assert {case.title for case in chosen(["coin"])} == {"coin (numpyro)", "coin (pyro)"}
    assert {case.family for case in chosen(["walks", "rare"])} == {"walks", "rare"}
    with pytest.raises(SystemExit, match="nonsense"):
        chosen(["nonsense"])
