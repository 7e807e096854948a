"""What to report of a program on which a compiler failed.

Imported where that happens.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Final

import numpy as np

from functrans.core import config
from functrans.core.errors import DefectError
from functrans.core.jaxpr import Jaxpr
from functrans.version import __version__

__all__ = ["defect_of", "reason_of"]

SHOWN_LINES: Final = 24
"""Of a program in a message; the report has all."""


def defect_of(error: Exception, jaxpr: Jaxpr, backend: str) -> DefectError:
    """The error for users where the compiler of `backend` failed on a program."""
    text = str(jaxpr)
    report = "\n".join([
        f"{_versions()}; backend {backend}", str(config.current()), "",
        *traceback.format_exception(type(error), error, error.__traceback__), text, ""])
    file = _kept(report)
    lines = text.splitlines()
    if len(lines) > SHOWN_LINES:
        lines = [*lines[:SHOWN_LINES], f"... ({len(lines)} lines)"]
    where = f"the report is in {file}" if file else "the `report` of this error has everything"
    found = DefectError(
        f"a defect of functrans: its compiler {backend!r} failed on {jaxpr.name}.",
        why="\n".join([reason_of(error), f"{_versions()}, on the program", *lines]),
        fix=f"report the program ({where}). Until then "
            "functrans.config.use_backend('reference') evaluates with NumPy")
    found.report = report
    return found


def reason_of(error: Exception) -> str:
    """What was raised and where, in a line."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f", at {'/'.join(Path(frames[-1].filename).parts[-3:])}:{frames[-1].lineno}" \
        if frames else ""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:200]}{place}" if text else \
        f"{type(error).__name__}{place}"


def _versions() -> str:
    # lazy: slow to import
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

    found = [f"functrans {__version__}"]
    with suppress(PackageNotFoundError):
        found.append(f"triton {version('triton')}")
    return ", ".join([*found, f"NumPy {np.__version__}", f"Python {platform.python_version()}",
                      f"{platform.machine()} {sys.platform}"])


def _kept(report: str) -> Path | None:
    """The file of its owner alone that a report is written into; None where it cannot be."""
    try:
        file, name = tempfile.mkstemp(prefix="functrans-defect-", suffix=".txt", text=True)
        with os.fdopen(file, "w", encoding="utf-8") as out:
            out.write(report)
    except OSError:
        return None
    return Path(name)
