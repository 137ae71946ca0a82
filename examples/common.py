"""What the examples share: their data, and where their pictures go."""

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).parent


def table(name):
    """The columns of a file in data/, by their names."""
    return np.genfromtxt(
        HERE / "data" / f"{name}.csv", delimiter=",", names=True, dtype=None, encoding="utf-8"
    )


def picture(script, summary):
    """The file that `--picture` names, or pictures/ with the name of the script."""
    parser = argparse.ArgumentParser(description=summary)
    default = HERE / "pictures" / f"{Path(script).stem}.png"
    parser.add_argument("--picture", type=Path, default=default, metavar="FILE", help=f"default: {default}")
    return parser.parse_args().picture


def axes(*shape, size=(9, 3.6), **options):
    """A figure, which no display is needed for, and its axes without frames."""
    figure = Figure(figsize=size, layout="constrained")
    made = figure.subplots(*shape, **options)
    for ax in np.ravel(made):
        ax.spines[["right", "top"]].set_visible(False)
    return figure, made


def probabilities(ax, found, of):
    """Bars of the probabilities of some numbers, as `posterior.distribution` gives them."""
    ax.bar(list(found), list(found.values()))
    ax.set(xlabel=of, ylabel="probability", xticks=list(found))


def save(figure, file):
    figure.savefig(file, dpi=100)
    print(f"\nPicture: {file}")
