"""Warnings that point to the user's call, however deep below it they arise."""

import os
import sys
import warnings

from pathmix.errors import PathmixWarning

_OWN_ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep


def warn(text: str) -> None:
    level, frame = 1, sys._getframe()
    while frame is not None and frame.f_code.co_filename.startswith(_OWN_ROOT):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, PathmixWarning, stacklevel=level)
