"""What Python and PyTorch make of values: whole numbers, texts, types, compiled functions."""

import math

import numpy as np
import pyro
import pyro.distributions as dist
import pytest
import torch
from scipy import integrate, stats

import pathmix
from pathmix.errors import ContinuousDecisionError
from pathmix.frontends.pyro.texts import NumberText, number_text

FEW = {"allocation": pathmix.SuccessiveHalving(2_000), "progress": False}
KEPT = []


def fitted(model, *args):
    return pathmix.SDVI(model, **FEW).run(0, *args)


WHOLE = {
    "int64": torch.tensor([1, 0, 1]),
    "int8": torch.tensor([1, 0, 1], dtype=torch.int8),
    "uint8": torch.tensor([1, 0, 1], dtype=torch.uint8),
    "bool": torch.tensor([True, False, True]),
    "list": [1, 0, 1],
    "numpy": np.array([1, 0, 1]),
}


@pytest.mark.parametrize("y", WHOLE.values(), ids=WHOLE)
def test_whole_numbers_are_observed_as_they_are(y):
    def model(y):
        p = pyro.sample("p", dist.Beta(2.0, 1.0))
        with pyro.plate("data", 3):
            pyro.sample("y", dist.Bernoulli(p), obs=y)

    assert fitted(model, y).log_evidence == pytest.approx(math.log(0.1), abs=0.02)


def test_fractions_are_not_written_into_whole_numbers():
    """As PyTorch says, also where nothing runs it but a density."""

    class Cut(dist.Normal):
        def log_prob(self, value):
            return torch.tensor(3).mul_(super().log_prob(value))

    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", Cut(x, 1.0), obs=torch.tensor(1.0))

    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        fitted(model)


LOOKS = {
    "startswith": lambda x: f"{x.item():.2f}".startswith("-"),
    "equal": lambda x: f"{abs(x.item()):.0f}" == "0",
    "in": lambda x: "-" in str(x.item()),
    "tensor": lambda x: "-" in f"{x:.3f}",
    "index": lambda x: str(x)[7] == "-",
    "length": lambda x: len(f"{x.item():.1f}") > 3,
    "key": lambda x: {"0": True}.get(f"{abs(x.item()):.0f}", False),
    "split": lambda x: f"{x.item():.3f}".split(".")[0] == "-1",
}


@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_who_looks_at_the_text_of_a_number_looks_at_the_number(look):
    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(1.0 if look(x) else 3.0, 0.5), obs=torch.tensor(1.2))

    with pytest.raises(ContinuousDecisionError, match="'x'"):
        fitted(model)


def test_texts_that_are_shown_and_kept_are_harmless():
    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        KEPT[:] = [f"{x.item():.2f}", str(x), f"x = {x.item():.2f}", "{:>8}".format(f"{x.item():.1f}")]
        KEPT.append(" ".join(KEPT) + KEPT[0])
        pyro.sample("y", dist.Normal(x, 1.0), obs=torch.tensor(1.0))

    assert fitted(model).log_evidence == pytest.approx(stats.norm.logpdf(1, 0, math.sqrt(2)), abs=0.01)
    assert len(KEPT[0]) > 3 and "." in KEPT[4]  # after the run, anybody may look


def test_every_way_to_look_is_told():
    looks = []
    text = number_text("1.5", lambda: looks.append(0))
    ways = [
        lambda: text == "1.5", lambda: text < "2", lambda: hash(text), lambda: "." in text, lambda: len(text),
        lambda: text[0], lambda: list(text), lambda: text.startswith("1"), lambda: text.find("5"),
        lambda: text.split("."), lambda: text.isdigit(), lambda: text.count("5"),
    ]  # fmt: skip
    for number, way in enumerate(ways, 1):
        way()
        assert len(looks) >= number
    looks.clear()
    assert isinstance(text, NumberText) and f"{text} {text!s:>9}" + text + "".join([text])
    assert not looks


@pytest.mark.parametrize("kind", ["Categorical", "Binomial"])
def test_a_discrete_value_reads_as_in_pytorch(kind):
    table = {"tensor(0)": -1.0, "tensor(1)": 1.0, "tensor(0.)": -1.0, "tensor(1.)": 1.0}

    def model():
        own = dist.Categorical(torch.tensor([0.5, 0.5])) if kind == "Categorical" else dist.Binomial(1, 0.5)
        mean = table[str(pyro.sample("k", own))]
        pyro.sample("y", dist.Normal(mean, 0.8), obs=torch.tensor(1.3))

    exact = math.log(0.5 * stats.norm.pdf(1.3, -1, 0.8) + 0.5 * stats.norm.pdf(1.3, 1, 0.8))
    assert fitted(model).log_evidence == pytest.approx(exact)


def asks_for_types(v):
    return v if isinstance(v, (int, float)) else 4.0


def test_who_asks_for_the_types_of_numbers_is_told():
    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(asks_for_types(x.item()), 0.5), obs=torch.tensor(0.6))

    assert any("asks for types at test_as_python_has_it.py" in note for note in fitted(model).notes)


def test_compiled_functions_run_as_what_they_were_compiled_from():
    @torch.compile(backend="eager")
    def folded(x):
        if x > 0:
            return x
        return -2 * x

    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        pyro.sample("y", dist.Normal(folded(x), 1.0), obs=torch.tensor(0.7))

    def density(x):
        return stats.norm.pdf(x) * stats.norm.pdf(0.7, x if x > 0 else -2 * x, 1.0)

    posterior = fitted(model)
    assert posterior.log_evidence == pytest.approx(
        math.log(integrate.quad(density, -8, 0)[0] + integrate.quad(density, 0, 8)[0]), abs=0.02
    )
    assert len(posterior.paths) == 2
    assert float(torch.ones(2).sum()) == 2.0  # PyTorch goes on


@pytest.mark.filterwarnings("ignore:.*no lowering.*")
@pytest.mark.filterwarnings("ignore::pathmix.PathmixWarning")
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_operations_of_pytorch_with_complex_results(precision):
    def model():
        x = pyro.sample("x", dist.Normal(0.0, 1.0))
        turned = torch.polar(torch.ones_like(x), x)
        pyro.sample("y", dist.Normal(turned.real, 0.5), obs=torch.tensor(0.3))

    def density(x):
        return stats.norm.pdf(x) * stats.norm.pdf(0.3, math.cos(x), 0.5)

    exact = math.log(integrate.quad(density, -8, 8)[0])
    posterior = pathmix.SDVI(model, precision=precision, **FEW).run(0)
    assert posterior.log_evidence == pytest.approx(exact, abs=0.05)
