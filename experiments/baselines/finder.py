"""Find the path that each draw of an address guide follows.

Known paths are asked first: those with the draw's discrete values, by looking these up, and then the
compiled conditions. The program itself only runs for draws that no known path claims.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple

import numpy as np

from experiments.baselines.address_guide import AddressGuide, Met, Noise, Sheet
from experiments.baselines.addresses import Address, discrete_address, stretches
from experiments.baselines.book import Book
from experiments.baselines.initialise import PriorDraws, add_addresses
from experiments.baselines.known_path import KnownPath
from pathmix.errors import ValueLookupError
from pathmix.program.values import SiteRows, SiteValues

_ROWS = 16  # runs of the program for a draw that no path claims; they give prior draws of new addresses

Chosen = tuple[int, ...]  # the choices of a discrete address, element by element


class Places(NamedTuple):
    """Where the sites of a path are in an address guide."""

    normals: np.ndarray  # in the order of the path's unconstrained vector
    categoricals: np.ndarray
    pinned: tuple[tuple[Address, Chosen], ...]


class Claim(NamedTuple):
    """The draws that follow a path, and log gamma as a density of their unconstrained vectors."""

    known: KnownPath
    places: Places
    rows: np.ndarray
    log_gamma: np.ndarray


@dataclass(eq=False)
class _Node:
    """Paths by their discrete values: where a path draws a discrete site, it goes on below its choice."""

    paths: list[KnownPath] = field(default_factory=list)
    below: dict[Address, dict[Chosen, "_Node"]] = field(default_factory=dict)


class Finder:
    """The known paths, in the eyes of an address guide."""

    def __init__(self, book: Book, guide: AddressGuide, cap: int) -> None:
        self.book, self.guide, self.cap = book, guide, cap
        self.places: dict[KnownPath, Places] = {}
        self._root = _Node()

    def register(self, draws: list[PriorDraws]) -> None:
        """Make new paths findable, and give the guide the addresses that it lacks."""
        draws = [drawn for drawn in draws if drawn.known not in self.places]
        add_addresses(self.guide, draws, self.cap)
        for known, *_ in draws:
            places = self.places[known] = _places(known, self.guide)
            node = self._root
            for address, chosen in places.pinned:
                node = node.below.setdefault(address, {}).setdefault(chosen, _Node())
            node.paths.append(known)

    def find(self, noise: Noise, generator: np.random.Generator) -> tuple[Sheet, list[Claim]]:
        """The path of every draw. Addresses that turn up for the first time are drawn as well."""
        sheet = self.guide.sheet(noise)
        open_ = np.ones(len(noise.normal), bool)
        claims = self._claims(sheet, open_)
        while np.any(open_):
            row = int(np.argmax(open_))
            known, sheet = self._follow(row, sheet, generator)
            places = self.places[known]
            rows = np.array([row])
            # The program itself took this path, whatever rounding makes of the conditions.
            log_gamma, _ = known.density(sheet.u[rows[:, None], places.normals])
            claims.append(Claim(known, places, rows, log_gamma))
            open_[row] = False
            claims += self._claims(sheet, open_)
        return sheet, claims

    def _claims(self, sheet: Sheet, open_: np.ndarray) -> list[Claim]:
        """Draws that known paths claim; they are taken out of `open_`."""
        nodes: dict[_Node, list[int]] = {}
        index = sheet.index.tolist() if self._root.below else []
        for row in np.flatnonzero(open_):
            for node in self._reached(index[row] if index else []):
                nodes.setdefault(node, []).append(int(row))
        claims = []
        for node, candidates in nodes.items():
            rows = np.array(candidates)
            for known in list(node.paths):
                rows = rows[open_[rows]]
                if not len(rows):
                    break
                places = self.places[known]
                log_gamma, inside = known.density(sheet.u[rows[:, None], places.normals])
                if np.any(inside):
                    claims.append(Claim(known, places, rows[inside], log_gamma[inside]))
                    open_[rows[inside]] = False
                    # Paths that were taken lately come first.
                    node.paths.remove(known)
                    node.paths.insert(0, known)
        return claims

    def _reached(self, index: list[int]) -> list[_Node]:
        """The nodes with paths that have a draw's discrete values."""
        reached, left = [], [self._root]
        while left:
            node = left.pop()
            if node.paths:
                reached.append(node)
            for address, chosen in node.below.items():
                below = chosen.get(tuple(index[self.guide.categoricals[address]]))
                if below is not None:
                    left.append(below)
        return reached

    def _follow(self, row: int, sheet: Sheet, generator: np.random.Generator) -> tuple[KnownPath, Sheet]:
        """Run the program on a draw until it reads nothing but the draw's own values.

        A run needs values by name, and in the program's coordinates; which address a name stands for, and
        through which bijection it goes, is only known from a run. Each run tells both for one more site at
        least, for the sites before it had their values.
        """
        given, last = self._discrete(row, sheet), None
        for trusted in count():
            try:
                known, batch_run = self.book.follow(_repeated(given), _ROWS)
            except ValueLookupError:  # a name beyond the trusted ones has another shape on this path
                given, last = dict(list(given.items())[:trusted]), None
                known, batch_run = self.book.follow(_repeated(given), _ROWS)
            if known not in self.places:
                inside = {name: values[batch_run.inside] for name, values in batch_run.values.items()}
                self.register([PriorDraws(known, inside, int(batch_run.inside.sum()), 1.0)])
                sheet = self.guide.sheet(self.guide.more_noise(sheet.noise, generator))
            if known is last or self._claimed_by(known, row, sheet):
                return known, sheet
            last, given = known, self._values(known, row, sheet)
        raise AssertionError("unreachable")

    def _claimed_by(self, known: KnownPath, row: int, sheet: Sheet) -> bool:
        places = self.places[known]
        chosen = [choice for _, choices in places.pinned for choice in choices]
        if not np.array_equal(sheet.index[row, places.categoricals], chosen):
            return False
        return bool(known.density(sheet.u[None, row, places.normals])[1][0])

    def _discrete(self, row: int, sheet: Sheet) -> SiteValues:
        """Discrete values by name, where a name can only mean one address. A good start, no more."""
        names = Counter(address.name for address in (*self.guide.normals, *self.guide.categoricals))
        return {
            address.name: self._whole(row, sheet, place).reshape(address.shape)
            for address, place in self.guide.categoricals.items()
            if names[address.name] == 1
        }

    def _values(self, known: KnownPath, row: int, sheet: Sheet) -> SiteValues:
        """What a draw says at the sites of a path, be it the draw's own or not."""
        u = sheet.u[row, self.places[known].normals]
        values = {name: array[0] for name, array in known.constrain(u[None])[0].items()}
        for site in known.slp.sites:
            if site.pinned is not None:
                place = self.guide.categoricals[discrete_address(site)]
                values[site.name] = self._whole(row, sheet, place).reshape(site.shape)
        return values

    def _whole(self, row: int, sheet: Sheet, place: slice) -> np.ndarray:
        return self.guide.lowest[place] + sheet.index[row, place]


def addresses_met(sheet: Sheet, claims: list[Claim]) -> Met:
    met = Met(np.zeros(sheet.u.shape), np.zeros(sheet.index.shape))
    for _, places, rows, _ in claims:
        met.normals[rows[:, None], places.normals] = 1
        met.categoricals[rows[:, None], places.categoricals] = 1
    return met


def _places(known: KnownPath, guide: AddressGuide) -> Places:
    normals = [guide.normals[stretch.address] for stretch in stretches(known.target)]
    categoricals, pinned = [], []
    for site in known.slp.sites:
        if site.pinned is not None:
            address = discrete_address(site)
            place = guide.categoricals[address]
            chosen = np.ravel(site.pinned).astype(np.int64) - guide.lowest[place]
            categoricals.append(place)
            pinned.append((address, tuple(chosen.tolist())))
    return Places(_columns(normals), _columns(categoricals), tuple(pinned))


def _columns(places: list[slice]) -> np.ndarray:
    return np.concatenate([np.zeros(0, int), *(np.arange(place.start, place.stop) for place in places)])


def _repeated(given: SiteValues) -> SiteRows:
    return {name: np.broadcast_to(value, (_ROWS, *np.shape(value))) for name, value in given.items()}
