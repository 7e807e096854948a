"""Where a compiler fails: another way is taken and told, or the error says that it is a defect.

A backend catches what fails in a part of a program (`is_defect`), computes that part in a plainer
way, and says so (`warn_of_fallback`, and in what `explain` shows). What leaves a backend all the
same becomes a DefectError (`reporting`), which has the program to report.
"""

from __future__ import annotations

import warnings
from typing import Final

from functrans.core import config
from functrans.core.errors import FallbackWarning, FunctransError
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import Source, user_source

__all__ = ["UnsupportedKernel", "is_defect", "reporting", "warn_of_fallback"]

NO_DEFECTS: Final = (FunctransError, MemoryError, OSError, ImportError, RecursionError, Warning)
"""What is said to the user, or is of the machine."""


class UnsupportedKernel(Exception):
    """What a target has no kernel for; the message says why."""


def is_defect(error: Exception) -> bool:
    """Whether an error in a compiler is a failure of the compiler."""
    return not isinstance(error, NO_DEFECTS)


class reporting:
    """Where the compiler of `backend` fails on a program, a DefectError has the report.

    (A class: the frames of contextlib would be between the error and the user's line.)
    """

    def __init__(self, jaxpr: Jaxpr, backend: str) -> None:
        self._jaxpr = jaxpr
        self._backend = backend

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if not isinstance(error, Exception) or not is_defect(error):
            return
        # later: only where something failed
        from functrans.lowering.defect_report import defect_of  # noqa: PLC0415

        found = defect_of(error, self._jaxpr, self._backend)
        raise found from (error if config.current().internal_frames else None)


def warn_of_fallback(what: str, instead: str, error: Exception, source: Source | None) -> None:
    """Say, once for a line of the user and a part of a program, that it is computed otherwise.

    `what` is the part that the compiler failed on, `instead` how it is computed now; the line is
    that which runs where the `source` of the part is not known.
    """
    # later: only where something failed
    from functrans.lowering.defect_report import reason_of  # noqa: PLC0415

    line = source or user_source()
    place = ("functrans", 0) if line is None else (line.filename, line.line)
    key = (what, instead, *place)
    if key in _told:
        return
    warnings.warn_explicit(
        f"functrans could not compile {what} as planned ({reason_of(error)}): {instead}. The "
        "result is right, and may take longer. It is a defect of functrans: please report the "
        "program.", FallbackWarning, *place)
    _told.add(key)


_told: set[tuple[str, str, str, int]] = set()
