"""Where the libraries of CUDA are: in NVIDIA's wheels, or where the loader looks."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from functrans import _runtime

__all__ = ["has_function", "is_there", "loaded"]

NEEDS = {"cufft": (), "cublas": ("cublasLt",), "cusolver": ("nvJitLink", "cublasLt", "cublas",
                                                            "cusparse"), "nccl": ()}
OF_FUNCTIONS = {
    **dict.fromkeys(("potrf", "laswp", "geqrf", "orgqr", "syevd", "gesvdj"), ("cusolver",)),
    "fft": ("cufft",), "trsm": ("cublas",), "getrf": ("cusolver", "cublas"),
    "collective": ("nccl",)}
"""What the functions of steps need (csrc/cuda)."""
MAJORS = (14, 13, 12, 11, 10)
"""Of the names of libraries that belong to CUDA 12 and later, the newest first."""


def is_there(name: str) -> bool:
    """Whether a library can be used."""
    return loaded(name) is None


def has_function(name: str) -> bool:
    """Whether the libraries of a step's function can be used."""
    return name in OF_FUNCTIONS and all(map(is_there, OF_FUNCTIONS[name]))


@cache
def loaded(name: str) -> str | None:
    """None once a library is open, else why it is not."""
    reasons = []
    for path in _candidates(name):
        for other in NEEDS[name]:  # found by their names from then on
            for needed in _beside(path, other):
                with contextlib.suppress(OSError):
                    ctypes.CDLL(needed)
        why = _runtime.cuda_load_library(name, path)
        if why is None:
            return None
        reasons.append(why)
    return "; ".join(reasons)


def _roots() -> list[Path]:
    """The folders of the package `nvidia`, which all the wheels share."""
    spec = find_spec("nvidia")
    return [] if spec is None else [Path(p) for p in spec.submodule_search_locations or ()]


def _candidates(name: str) -> Iterator[str]:
    """Paths to try: of CUDA 13's wheels (one folder), of CUDA 12's (one each), bare names."""
    for root in _roots():
        for folder in (*sorted(root.glob("cu[0-9]*/lib"), reverse=True), root / name / "lib"):
            yield from map(str, sorted(folder.glob(f"lib{name}.so.*"), reverse=True))
    yield from (f"lib{name}.so.{major}" for major in ((2,) if name == "nccl" else MAJORS))
    yield f"lib{name}.so"


def _beside(path: str, other: str) -> list[str]:
    """Another library in the same folder, or in the folder of its own wheel."""
    folder = Path(path).parent
    package = {"cublasLt": "cublas", "nvJitLink": "nvjitlink"}.get(other, other)
    folders = (folder, folder.parent.parent / package / "lib")
    return [str(p) for f in folders if f.is_absolute() for p in sorted(f.glob(f"lib{other}.so.*"))]
