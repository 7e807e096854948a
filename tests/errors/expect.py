"""What every message has in common: its class, its parts, the user's line, a clean traceback."""

import linecache
import re
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

import functrans
from functrans.core.errors import FunctransError

_PACKAGES = [str(Path(p).resolve()) for p in functrans.__path__]
_INTERNAL = tuple(f"{p}/" for root in _PACKAGES for p in (
    root, f"{root}/primitives", f"{root}/lowering") if Path(p).is_dir())


def internal_frames(tb: TracebackType | None) -> list[str]:
    """The frames of the package in a traceback, as file:line."""
    tests = str(Path(__file__).resolve().parent.parent)
    return [f"{f.filename}:{f.lineno}" for f in traceback.extract_tb(tb)
            if f.filename.startswith(("<functrans>", *_INTERNAL))
            and not f.filename.startswith(tests)]


def place_of(error: FunctransError) -> tuple[str, int]:
    """The file and line that a message names."""
    match = re.search(r"^  Where: (.+):(\d+), in ", str(error), re.MULTILINE)
    assert match, f"no place in: {error}"
    return match[1], int(match[2])


def caught(call: Callable[[], Any], cls: type[FunctransError], *texts: str) -> str:
    """The message of the error that `call` raises, once all that every message owes is checked."""
    with pytest.raises(cls) as info:
        call()
    error = info.value
    text = str(error)
    assert type(error) is cls
    for part in texts:
        assert part in text, f"{part!r} is not in: {text}"
    filename, line = place_of(error)
    assert not filename.startswith(_INTERNAL) or "/tests/" in filename, text
    assert filename == call.__code__.co_filename  # type: ignore[attr-defined]
    source = linecache.getline(filename, line).strip()
    assert source and source in text
    assert len(internal_frames(error.__traceback__)) <= 1, internal_frames(error.__traceback__)
    assert not re.search(r" at 0x[0-9a-f]+|PyTreeSpec|Tracer\b", text), text
    assert all(len(x) <= 400 for x in text.splitlines())
    return text
