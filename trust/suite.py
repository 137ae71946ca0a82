"""Every case there is."""

from trust.case import Case
from trust.programs import (
    change_points,
    conjugate,
    counts,
    grammars,
    hierarchies,
    markov,
    mixtures,
    rare,
    rejection,
    selection,
    shapes,
    supports,
    symbolic,
    walks,
    wrong_answers,
)

FAMILIES = (
    conjugate, selection, change_points, mixtures, walks, rejection, grammars, markov, counts, shapes,
    supports, hierarchies, symbolic, rare, wrong_answers,
)  # fmt: skip
CASES: dict[str, Case] = {case.title: case for family in FAMILIES for case in family.CASES}


def chosen(words: list[str]) -> list[Case]:
    """Cases whose name, family, library or whole title is among the words; all of them for none."""
    known = {word for case in CASES.values() for word in described(case)}
    if unknown := sorted(set(words) - known):
        raise SystemExit(f"no case, family or library is called {', '.join(unknown)}")
    return [case for case in CASES.values() if not words or set(words) & described(case)]


def described(case: Case) -> set[str]:
    return {case.name, case.family, case.library, case.title}
