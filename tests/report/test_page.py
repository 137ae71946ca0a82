"""What a report says, as text."""

import dataclasses
import re
import sys
from html import escape
from html.parser import HTMLParser

import pytest

import pathmix
from pathmix.report import page

from .conftest import X, Y, line

VOID = {"meta", "input", "path", "use", "rect"}


class Balanced(HTMLParser):
    """Finds tags that are not closed in their order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def text(fitted):
    return page(fitted)


def test_it_is_whole_and_needs_nothing_else(text):
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    for tag, attrs in parser.seen:
        assert tag not in ("link", "iframe", "object") and "src" not in attrs
        assert not attrs.get("href", "#").startswith(("http", "//"))
        assert not attrs.get("xlink:href", "#").startswith(("http", "//"))
    assert "@import" not in text and "url(http" not in text


def test_it_says_what_the_posterior_says(text, fitted):
    assert fitted.title in text and escape(str(fitted.verdict)) in text
    assert all(f"{path.steps:,}" in text for path in fitted.paths)
    assert "has_slope <b>" not in text and "has_slope &lt;b&gt;&amp;" in text
    for row in ("slope", "level"):  # of the table of a path that opens
        assert f'<th scope="row">{row}</th>' in text
    assert "<dt>scale</dt><dd>2." in text  # numpyro.param


def test_numbers_of_sites_are_those_of_draws(text, fitted):
    draws = fitted.sample(0, 1_000, path=0)
    row = re.search(r'<th scope="row">slope</th>(.*?)</tr>', text).group(1)
    mean, deviation, *_ = map(float, re.findall(r">([^<>]+)</td>", row))
    assert mean == pytest.approx(draws["slope"].mean(), rel=1e-3)
    assert deviation == pytest.approx(draws["slope"].std(), rel=1e-3)


def test_utilisation_only_where_there_is_any(text, fitted):
    assert "utilisation" not in text
    timings = dataclasses.replace(fitted.timings, utilisation=0.625)
    assert "<dt>utilisation</dt><dd>62%</dd>" in page(dataclasses.replace(fitted, timings=timings))


def test_it_tells_how_it_was_made(text, fitted):
    made = fitted.provenance
    assert (made.method, made.model, made.seed) == ("SDVI", "line", "0")
    assert set(made.changed) == {"allocation", "starts"}
    assert made.versions["pathmix"] == pathmix.__version__ and made.versions["jax"] in text
    assert "SuccessiveHalving(budget=2000, keep=1)" in text
    assert made.settings["particles"] == "10" and "particles" not in made.changed


def test_a_path_with_nothing_to_train_has_no_guide_to_tell_of(text, crowded):
    assert "dimension" not in page(crowded)
    assert "FullRank of 1 dimension," in text and "FullRank of 2 dimensions," in text


def test_pictures_of_one_page_do_not_share_names(text):
    names = re.findall(r'<clipPath id="([^"]+)"', text)
    assert len(names) == len(set(names)) > 3


def test_a_loaded_posterior_without_its_model(fitted, tmp_path):
    fitted.save(tmp_path / "fit")
    alone = pathmix.load(tmp_path / "fit").report(tmp_path / "alone.html").read_text()
    assert "pathmix.load" in alone  # instead of the picture of predictions
    whole = pathmix.load(tmp_path / "fit", line, X, Y)
    assert whole.provenance == fitted.provenance
    assert page(whole) == page(fitted)


def test_without_matplotlib(fitted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = page(fitted)
    assert "pathmix[plots]" in text and "<svg" not in text and escape(str(fitted.verdict)) in text


def test_chains_have_a_report_too():
    posterior = pathmix.DCC(line, iterations=4, samples=20, chains=2).run(0, X, Y)
    text = page(posterior)
    assert "<dd>DCC</dd>" in text and escape(str(posterior.verdict)) in text


def test_a_folder_that_is_not_there(fitted, tmp_path):
    with pytest.raises(pathmix.PathmixError, match="nowhere"):
        fitted.report(tmp_path / "nowhere" / "fit.html")


def test_the_phases_of_training_are_told(fitted):
    halved, whole = sorted(fitted.paths, key=lambda path: len(path.phases))
    assert len(halved.phases) == 1 and len(whole.phases) == 2  # one of them was set aside
    assert halved.phases[0] == whole.phases[0] < whole.phases[1]
    assert all(path.phases[-1] == len(path.history) for path in fitted.paths)
