"""The examples of docs/extending.md, as they stand there."""

import re
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy import stats

import pathmix

PAGE = (Path(__file__).parent.parent / "docs" / "extending.md").read_text()
PRIOR = (0.6, 0.395, 0.005)


def model(y):
    k = int(numpyro.sample("k", dist.Categorical(probs=jnp.array(PRIOR))))
    numpyro.sample("pair", dist.Normal(0, 1).expand([2]))
    z = numpyro.sample("z", dist.Normal(float(k), 1))
    numpyro.sample("y", dist.Normal(z, 1), obs=y)


def test_a_guide_a_discovery_and_an_allocation():
    names = {"model": model, "y": 0.5}
    for example in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        exec(compile(example, "docs/extending.md", "exec"), names)
    posterior = names["posterior"]
    assert sorted(path.pinned["k"] for path in posterior.paths) == [0, 1]  # the third is not likely enough
    log_z = [np.log(PRIOR[k]) + stats.norm.logpdf(0.5, k, np.sqrt(2)) for k in (0, 1)]
    for path in posterior.paths:
        assert path.elbo == pytest.approx(log_z[path.pinned["k"]], abs=0.05)
        guide = path.guide.family
        assert sorted(guide.owners.count(n) for n in (0, 1)) == [1, 2] and path.guide.params[1].shape == (2,)
    assert posterior.discovery.dropped_mass == pytest.approx(PRIOR[2], abs=1e-9)
    assert sum(path.steps for path in posterior.paths) == 6_000
    assert isinstance(guide, pathmix.guides.StructuredGuide) and isinstance(guide, pathmix.Guide)
