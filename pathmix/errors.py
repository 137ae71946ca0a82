"""Every error that pathmix raises on purpose. Each says what happened, where, and what to do."""

# What brings a library.
_EXTRAS = {
    "torch": "'pathmix[pyro]'",
    "pyro": "'pathmix[pyro]'",
    "arviz_base": "'pathmix[arviz]'",
    "arviz": "'pathmix[arviz]'",
    "matplotlib": "'pathmix[plots]'",
    "ray": "'pathmix[ray]'",
}


class PathmixError(Exception):
    """Base of all pathmix errors."""


class OptionError(PathmixError, ValueError):
    """An option has a value that cannot work."""


class ProgramError(PathmixError):
    """The user's program does something that cannot be handled; names the site and the source line."""


class DuplicateSiteError(ProgramError):
    """Two sites of one run share a name."""


class ContinuousDecisionError(ProgramError):
    """A continuous random value was turned into a Python number."""


class VectorDecisionError(ProgramError, TypeError):
    """Python asked a value of many elements for one truth value, or one number."""


class ShapeError(ProgramError):
    """The value of a site, its distribution and its plates do not fit together."""


class InvalidParameterError(ProgramError, ValueError):
    """A parameter of a distribution is outside of what the distribution allows."""


class ParameterError(ProgramError):
    """A parameter of the program (`numpyro.param`, `pyro.param`) cannot be learned."""


class UnsupportedSiteError(ProgramError):
    """A latent site has a distribution that no guide can cover."""


class NoLatentSiteError(ProgramError):
    """The program draws nothing that could be inferred."""


class ImpossibleObservationError(ProgramError):
    """No path of the program can have produced the data."""


class RunawayProgramError(ProgramError):
    """One forward run drew too many sites or took too long."""

    def __init__(self, message: str, given_up: str = "did not end") -> None:
        super().__init__(message)
        self.given_up = given_up  # what such runs did, if others ended


class MixedLibrariesError(ProgramError):
    """A program makes some statements with Pyro and some with NumPyro."""


class MissingExtraError(PathmixError, ImportError):
    """Something needs a library that is not installed."""

    def __init__(self, what: str, library: str | None) -> None:
        extra = _EXTRAS.get((library or "").split(".")[0], library)
        super().__init__(f"{what} needs {library}, which is not installed: pip install {extra}.")


class HiddenRandomnessError(ProgramError):
    """The program has random numbers that are not from a sample statement, or runs otherwise unrepeatable."""

    def __init__(self, what: str, *, of_one_run: bool = False) -> None:
        happened = (
            "The program has random numbers that belong to no site"
            if of_one_run
            else "The program behaves differently when it is run twice with the same seed"
        )
        super().__init__(
            f"{happened}: {what}. Draw every "
            "random value with a sample statement; other random numbers (of Python, NumPy, PyTorch), sets, "
            "clocks and state kept between calls make runs unrepeatable."
        )


class ValueLookupError(PathmixError, KeyError):
    """A dict of latent values lacks a site that the program draws, or has one that it does not."""

    def __str__(self) -> str:  # KeyError would print the repr
        return str(self.args[0])


class ArgumentsError(PathmixError, TypeError):
    """A model is called with arguments that it does not take."""


class RejectionError(PathmixError):
    """A truncated guide gave too few draws inside its region."""


class FileError(PathmixError):
    """A file cannot be written, or read, or is not what it should be."""


class ClusterError(PathmixError):
    """Workers of a cluster are not there, or were lost."""


class UnwritableError(FileError):
    """A posterior computes with something that no file can hold."""


class RecipeError(PathmixError):
    """A function cannot be described to others, or a description not be read; it is written down instead."""


class MissingModelError(PathmixError):
    """A posterior that was loaded without its model is asked for what only the model can tell."""


class ChangedError(PathmixError):
    """Something is not what it was when a file was written."""


class SurroundingsError(PathmixError, RuntimeError):
    """A call was made where it cannot work: under a transformation, inside a handler, or after a fork."""


class PathmixWarning(UserWarning):
    """Base of all pathmix warnings."""
