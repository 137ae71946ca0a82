"""Texts of continuous numbers: who looks at one, rather than show it, looks at the number."""

from collections.abc import Callable
from typing import Any

# Takes no room. Text of a continuous number reads as the number does, and is no number, or a name of a site.
MARK = "\N{WORD JOINER}"
_LOOKS = (
    "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__contains__", "__len__",
    "__getitem__", "__iter__", "startswith", "endswith", "find", "rfind", "index", "rindex", "count", "split",
    "rsplit", "partition", "rpartition", "isdigit", "isdecimal", "isnumeric", "removeprefix", "removesuffix",
)  # fmt: skip


class NumberText(str):
    """Tells, by `look`, when its program looks at it."""

    look: Callable[[], object]


def number_text(text: str, look: Callable[[], object]) -> NumberText:
    made = NumberText(MARK + text)
    made.look = look
    return made


def _looking(name: str) -> Callable[..., Any]:
    method = getattr(str, name)

    def looked(text: NumberText, *args: Any) -> Any:
        text.look()
        return method(text, *args)

    return looked


for _name in _LOOKS:
    setattr(NumberText, _name, _looking(_name))
