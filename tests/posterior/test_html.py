"""What a notebook shows."""

from html.parser import HTMLParser

import numpyro
import numpyro.distributions as dist
import pytest

import pathmix


class Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.texts, self.titles, self.rows = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.rows += tag == "tr"
        self.titles += [value for name, value in attrs if name == "title"]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(posterior):
    page = Page()
    page.feed(posterior._repr_html_())
    assert not page.open
    return page


def fitted(model):
    options = {"allocation": pathmix.Uniform(20), "starts": 1, "progress": False}
    return pathmix.SDVI(model, discovery=pathmix.PriorDiscovery(200), **options).run(0)


def test_a_table_and_a_verdict():
    def model():
        x = numpyro.sample("x", dist.Normal(0, 1))
        mean = numpyro.sample("a", dist.Normal(0, 1)) if x < 0 else 1.0
        numpyro.sample("y", dist.Normal(mean, 1), obs=0.3)

    posterior = fitted(model)
    page = read(posterior)
    assert page.rows == 3 and set(page.titles) == {"x < 0", "x >= 0"}  # escaped on the way
    assert "<b>" not in "".join(page.texts) and any(str(posterior.verdict) in text for text in page.texts)
    assert any(posterior.discovery.unseen in text for text in page.texts)


@pytest.mark.parametrize("count", [25])
def test_many_paths_are_summed_up(count):
    def model():
        k = int(numpyro.sample("k", dist.DiscreteUniform(0, count - 1)))
        numpyro.sample("y", dist.Normal(k, 5), obs=3.0)

    page = read(fitted(model))
    assert page.rows == 22 and any(text.startswith("... 5 more, weight ") for text in page.texts)
