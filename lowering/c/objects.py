"""Shared objects of C texts: from the disk cache, or compiled now.

Apart from the cache, because a program that the cache describes needs no compiler and does not
import one: 3 ms of its first result.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from functrans.lowering.c.toolchain import compile_shared, compiler_identity
from functrans.lowering.store.cache import FORMAT, Cache, digest

__all__ = ["load_or_compile"]


def load_or_compile(sources: Sequence[str], flags: Sequence[str], cache: Cache) -> Path:
    """The shared object of some C texts, from the cache or compiled now.

    Raises CompilerMissing and CompilerError.
    """
    key = digest(FORMAT, os.uname().machine, compiler_identity(), *flags, "", *sources)
    found = cache.find(key)
    if found is not None:
        return found
    return cache.add(key, lambda path: compile_shared(sources, flags, path))
