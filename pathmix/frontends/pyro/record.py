"""Record: one forward run of a Pyro program.

The program runs as it is, one seed at a time. Every value that Python looks at counts as a decision,
be it random or not: only the replay can tell, and drops those that are not.

Most programs tell all there is to know by the methods that ask tensors for numbers, and run as fast as they
do in Pyro. A run that comes to something else is made again, and followed function by function.
"""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from pyro import distributions as dist

from pathmix.doors.pyro import Messenger, handlers, site_is_subsample
from pathmix.doors.torch import Apply, functions_applied_by, functorch_level, storage_id, tree_leaves
from pathmix.errors import InvalidParameterError, PathmixError, ProgramError, RunawayProgramError
from pathmix.frontends.decisions import as_tuples, seen
from pathmix.frontends.drawing import check_proper, not_drawn, not_drawn_as_whole
from pathmix.frontends.parameters import invalid, parameters
from pathmix.frontends.pyro.floats import random_floats
from pathmix.frontends.pyro.foresight import Alike, Course, Draw, Foresight, kept, reseed
from pathmix.frontends.pyro.influence import Influence
from pathmix.frontends.pyro.lookups import Lookups, Unsure
from pathmix.frontends.pyro.lowering.dtypes import as_engine, as_numpy
from pathmix.frontends.pyro.parameters import Parameters
from pathmix.frontends.pyro.plates import subsampling, whole
from pathmix.frontends.pyro.run import LeftPath, NotWatched, Run
from pathmix.frontends.pyro.sites import (
    check_distribution,
    in_plate,
    is_deterministic,
    is_discrete,
    is_latent,
    is_observation,
    marks_fixed,
    unobserve,
)
from pathmix.frontends.pyro.supports import is_inside
from pathmix.frontends.pyro.texts import MARK, NumberText
from pathmix.frontends.shapes import failing_site, shape_error
from pathmix.frontends.sitelog import SiteLog
from pathmix.frontends.undecided import by_element
from pathmix.program.arguments import take_data
from pathmix.program.failures import FailedRun
from pathmix.program.path import Decision, DecisionKind, Path
from pathmix.program.program import Program
from pathmix.program.source import Place, caller, calling_place, raised_at
from pathmix.program.wishes import SIMULATED, OutsideSupport, Wishes


def record(
    program: Program,
    word: int,
    wishes: Wishes,
    follow: Path | None = None,
    foresight: Foresight | None = None,
    alike: list[Alike] | None = None,
    *,
    as_numbers: bool = False,
    by_functions: bool = False,
) -> Run | FailedRun:
    """Run the program once. With `follow`, discrete sites are forced to the values of that path.

    `foresight` learns from the run; or `alike` gets it, if others along its path are drawn as it was.
    """
    watched = foresight is not None or alike is not None
    influence, failure = Influence() if watched else None, None
    course = None if foresight is None else foresight.course()
    recorder = _Recorder(program, word, wishes, follow, influence, course, as_numbers=as_numbers)
    # A registered parameter is replaced by a mode, of which methods know nothing.
    by_functions = by_functions or bool(program.watched) or program.parameter_use != "initial"
    wants_more = False
    with (
        subsampling(whole),
        recorder.log.own_time,
        recorder.lookups if by_functions else recorder.lookups.by_methods(),
        recorder.reach or nullcontext(),
        recorder.influence or nullcontext(),
        recorder.parameters.in_place(),
        functions_applied_by(recorder.apply),
        random_floats(program.model),
        recorder,
    ):
        try:
            program()
        except NotWatched:
            wants_more = True
        except Unsure:
            program.watched.add("functions")
            wants_more = True
        except RecursionError as error:
            return recorder.failed(recorder.log.too_deep(error))
        except (InvalidParameterError, RunawayProgramError) as error:
            return recorder.failed(error)
        except PathmixError:
            raise
        except Exception as error:
            if (msg := failing_site(error)) is not None and (wrong := shape_error(msg, raised_at(error))):
                raise wrong from error
            failure = recorder.failed(error)
    if wants_more:
        return record(program, word, wishes, follow, foresight, alike)
    if failure is not None and not by_functions:
        # Maybe it would not have failed if PyTorch's functions took numbers of different precision.
        again = record(program, word, wishes, follow, foresight, alike, by_functions=True)
        if not isinstance(again, FailedRun):
            program.watched.add("functions")
        return again
    if failure is not None:
        if follow is not None or not any(recorder.continuous):
            return failure
        # Maybe it would not have failed with the numbers that it asked for, and got no numbers.
        again = record(program, word, wishes, as_numbers=True)
        return failure if isinstance(again, FailedRun) else again
    run = recorder.run()
    is_settled = recorder.influence is not None and not recorder.influence.has_say
    if foresight is not None:
        foresight.learn(recorder.settled, run, is_settled=is_settled)
    if alike is not None and is_settled:
        alike.append(Alike(run, tuple(recorder.settled)))
    return run


class _Recorder(Messenger):
    """Sees every site and every decision of one run."""

    def __init__(
        self,
        program: Program,
        word: int,
        wishes: Wishes,
        follow: Path | None,
        influence: Influence | None,
        course: Course | None,
        *,
        as_numbers: bool,
    ) -> None:
        super().__init__()
        self.influence, self.course = influence, course
        # Of continuous sites.
        self.reach = Influence(goes_on=True) if "continuous" in program.watched else None
        self.settled: list[Draw] = []  # draws before any continuous value had a say
        self.program, self.word, self.wishes, self.follow = program, word, wishes, follow
        self.lookups = Lookups(self, compared=self._compared)
        self.parameters = Parameters(program)
        self.forced = {} if follow is None else dict(follow.pinned)
        self.addresses: list[str] = []
        self.decisions: list[Decision] = []
        self.places: list[Place] = []
        self.log = SiteLog(program.limits)
        self.pinned: list[tuple[str, Any]] = []
        self.scalars: set[str] = set()  # pinned sites whose elements are single numbers
        self.looked_at: set[str] = set()  # pinned sites
        self.continuous: list[bool] = []
        self.as_numbers = as_numbers  # are given to Python where it asks for them
        self._storages: dict[int, frozenset[str]] = {}  # of their values; `_kept` keeps them
        self._kept: list[torch.Tensor] = []
        self.values: dict[str, np.ndarray] = {}
        self.observed: dict[str, np.ndarray] = {}
        self.invalid: list[str] = []
        self._reseed()

    def failed(self, error: Exception) -> FailedRun:
        return FailedRun(error, raised_at(error), self.log.last, np.ones(1, bool), len(self.log))

    # The observer of decisions.

    def decide(self, tensor: torch.Tensor, kind: DecisionKind) -> Any:
        self.log.check_limits()
        self.overlook(tensor)
        self.looked_at |= self._sites_of(tensor)
        decision = seen(as_numpy(tensor), kind)
        position = len(self.decisions)
        if self.follow is not None and self.follow.decisions[position : position + 1] != (decision,):
            raise LeftPath
        self.decisions.append(decision)
        self.places.append(calling_place())
        return decision.value

    def overlook(self, tensor: Any) -> None:
        if self.influence is not None:
            self.influence.look(tensor)

    @property
    def is_listening(self) -> bool:
        return any(handler is self for handler in handlers()) and not self.lookups.pauses

    def shown(self, tensor: torch.Tensor) -> str:
        return repr(tensor)

    def is_continuous(self, tensor: torch.Tensor) -> bool:
        if self.reach is None:
            self.program.watched.add("continuous")
            raise NotWatched
        self.continuous.append(not self.as_numbers and self.reach.reaches(tensor))
        return self.continuous[-1]

    def apply(self, _: Any, apply: Apply, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """A function with a derivative of its own may look at numbers, and leave PyTorch."""
        with self.lookups.paused():
            results = apply(*arguments, **options)
        given = [leaf for leaf in arguments if isinstance(leaf, torch.Tensor)]
        for influence in (self.influence, self.reach):
            if influence is not None and any(map(influence.reaches, given)):
                for leaf in tree_leaves(results):
                    influence.add(leaf)
        return results

    # The handler of sites.

    def _pyro_sample(self, msg: Any) -> None:
        if not site_is_subsample(msg):
            with self.lookups.paused():
                self._sample(msg)

    def _sample(self, msg: Any) -> None:
        name = msg["name"]
        self.log.add(
            name.replace(MARK, ""),
            is_random="tensor(" in name or isinstance(name, NumberText) or MARK in name,
        )
        self.log.check_limits()
        if functorch_level() is not None:
            raise ProgramError(
                f"The program draws the site {name!r} at {caller()} inside a function that PyTorch "
                "transforms (vmap, grad, ...). Draw sites outside it, or in a pyro.plate."
            )
        take_data(msg, torch.as_tensor)
        marks_fixed(msg)
        latent, observed = is_latent(msg), is_observation(msg)
        told = self.wishes.simulate is not None if is_deterministic(msg) else self.wishes.data and observed
        if told:
            self.observed[name] = as_numpy(msg["value"])
        if self.wishes.puts_in(name, latent=latent, observed=observed):
            msg["value"], msg["is_observed"] = None, False
            latent = is_latent(msg)
        elif self.wishes.simulates(name, observed=observed):
            unobserve(msg)
            latent = is_latent(msg)
        # Of a run along a path, the distributions of continuous sites alone.
        matters = self.follow is None or (latent and name not in self.forced)
        for parameter in parameters(msg["fn"]):
            if matters:
                self.overlook(parameter.value)
            if not parameter.allows(as_numpy(parameter.value, copy=False)):
                self.invalid.append(parameter.outside(name, caller()))
        if msg["value"] is None:
            check_distribution(msg)
            if isinstance(msg["fn"], dist.Uniform):
                check_proper(name, as_numpy(msg["fn"].low), as_numpy(msg["fn"].high))
            self._draw(msg, latent=latent)

    def _pyro_param(self, msg: Any) -> None:
        self.parameters.give(msg)

    def _pyro_post_param(self, msg: Any) -> None:
        self.parameters.keep(msg)

    def _draw(self, msg: Any, *, latent: bool) -> None:
        self._reseed()
        is_forced = msg["name"] in self.forced
        draw = self._settled_draw(msg) if latent and not is_forced else None
        try:
            with nullcontext() if self.influence is None or not is_forced else self.influence.paused():
                value = msg["fn"](*msg["args"], **msg["kwargs"])
        except NotImplementedError as error:
            if "not implemented for" in str(error):  # a type of numbers, not the distribution
                raise not_drawn_as_whole(msg["name"], msg["fn"], caller(), error) from error
            raise not_drawn(msg["name"], msg["fn"], caller()) from error
        except (RuntimeError, ValueError) as error:
            for parameter in parameters(msg["fn"]):
                value = as_numpy(parameter.value)
                if not parameter.allows(value):
                    raise invalid(parameter, value, parameter.bad(value), msg["name"], caller()) from error
            raise
        name = msg["name"]
        if msg["infer"].get(SIMULATED):
            self.observed[name] = as_numpy(value)
        elif latent:
            if not is_forced:
                self._note(draw, value)
            given = self._given_value(msg, value)
            if given is not None:
                value = given
            if is_discrete(msg):
                value = self._forced_value(name, value)
                self.scalars |= set() if by_element(msg["fn"], dist) is None else {name}
                self._tells_of(value, frozenset({name}))
            elif self.reach is not None:
                self.reach.add(value)
            array = as_numpy(value)
            if is_discrete(msg):
                self.pinned.append((name, as_tuples(array.astype(np.int64))))
            if given is None and self.wishes.simulate is not None:
                self.observed[name] = array
            position = len(self.addresses)
            if self.follow is not None and self.follow.addresses[position : position + 1] != (name,):
                raise LeftPath
            self.addresses.append(name)
            self.values[name] = as_engine(array)
        msg["value"] = value

    def _settled_draw(self, msg: Any) -> Draw | None:
        """A site that is drawn the same way in each run with the same discrete draws before it."""
        if self.influence is None or self.influence.has_say:
            return None
        known = None if self.course is None else self.course.draw(msg["name"])
        draw = known or kept(msg, self._position, is_discrete=is_discrete(msg))
        # What a path leaves open may change all that comes after.
        if draw is None or (self.follow is not None and draw.is_discrete):
            self.influence.say()
        return draw

    def _note(self, draw: Draw | None, value: torch.Tensor) -> None:
        """Note how a site was drawn, if its distribution is settled: then nothing continuous reaches it."""
        if self.influence is None:
            return
        self.influence.look(value)
        if draw is not None and not self.influence.has_say:
            self.settled.append(draw)
            if self.course is not None:
                self.course.drew(draw, as_numpy(value))
            if not draw.is_discrete:
                self.influence.add(value)

    def _given_value(self, msg: Any, drawn: torch.Tensor) -> torch.Tensor | None:
        """The given value of a site; None if it is drawn, where the wishes allow it."""
        name = msg["name"]
        if name not in self.wishes.given:
            return self.wishes.check_present(name, in_plate=in_plate(msg))
        value = torch.from_numpy(np.array(self.wishes.given[name]))
        if not self.wishes.fits(name, tuple(value.shape), tuple(drawn.shape), in_plate=in_plate(msg)):
            return None
        if (self.wishes.supported or self.wishes.proposed) and not is_inside(msg, value):
            if self.wishes.proposed:
                return None
            raise OutsideSupport
        if name in self.wishes.gaps:
            value = torch.where(value.isnan(), drawn, value)
        return value.to(drawn.dtype)

    def _forced_value(self, name: str, value: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.forced[name]).to(value.dtype) if name in self.forced else value

    @property
    def _position(self) -> int:
        return len(self.log) + 1

    def _reseed(self) -> None:
        reseed(self.word, self._position)

    def _compared(self, tensors: Iterable[Any], result: Any) -> None:
        """Who looks at the result looks at the sites that were compared."""
        names = [self._sites_of(tensor) for tensor in tensors if isinstance(tensor, torch.Tensor)]
        if any(names) and isinstance(result, torch.Tensor):
            self._tells_of(result, frozenset().union(*names))

    def _tells_of(self, tensor: torch.Tensor, names: frozenset[str]) -> None:
        if (storage := storage_id(tensor)) is not None:
            self._storages[storage] = names
            self._kept.append(tensor)

    def _sites_of(self, tensor: torch.Tensor) -> frozenset[str]:
        """The discrete sites whose value a tensor is, or a comparison of their values."""
        storage = storage_id(tensor) if self._storages else None
        return frozenset() if storage is None else self._storages.get(storage, frozenset())

    def run(self) -> Run:
        path = Path(tuple(self.addresses), tuple(self.decisions), tuple(self.pinned))
        if self.follow is not None and path.without(self.follow.summed) != self.follow:
            raise LeftPath
        return Run(
            path,
            tuple(self.places),
            self.log.places,
            self.values,
            self.observed,
            tuple(self.invalid),
            frozenset(self.scalars),
            frozenset(self.looked_at),
            tuple(self.continuous),
        )
