"""The `precision=` of products: how it is given, and which of several holds."""

from __future__ import annotations

from typing import Any

from functrans.core import config
from functrans.core.errors import ArgumentError
from functrans.core.precision import (
    PRECISIONS,
    DotAlgorithm,
    DotAlgorithmPreset,
    Precision,
)
from functrans.core.source import user_source

__all__ = ["DotAlgorithm", "DotAlgorithmPreset", "Precision", "as_precision", "most_precise",
           "precision_params", "resolved_precision"]


def as_precision(name: str, value: Any) -> Precision | None:
    """The precision meant by a Precision, a word, None, or one of these for each operand.

    Of two the more exact one. Raises ArgumentError for anything else.

    >>> as_precision("dot", ("default", "float32"))
    Precision.HIGHEST
    """
    if value is None or isinstance(value, Precision):
        return value
    if isinstance(value, str) and value in PRECISIONS:
        return PRECISIONS[value]
    if isinstance(value, str) and value in DotAlgorithmPreset.__members__:
        value = DotAlgorithmPreset[value]
    if isinstance(value, DotAlgorithmPreset):
        return value.precision
    if isinstance(value, DotAlgorithm) and value.precision is not None:
        return value.precision
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return most_precise(*[as_precision(name, v) for v in value])
    raise ArgumentError(f"{name}: precision={value!r} is no precision.", where=user_source(),
                        why="it is a lax.Precision, a lax.DotAlgorithm of floating types, None, "
                        f"one of {', '.join(PRECISIONS)}, or a pair of these, for the two "
                        "operands.", fix='precision="highest"')


def precision_params(name: str, value: Any) -> dict[str, Precision]:
    """The parameter of a product for its `precision=`: None is what a scope around the call says.

    A scope may be inside of a function that is traced, and ends before its program is compiled.

    >>> precision_params("dot", None), precision_params("dot", "highest")
    ({}, {'precision': Precision.HIGHEST})
    >>> with config.matmul_precision("high"):
    ...     precision_params("dot", None)
    {'precision': Precision.HIGH}
    """
    found = None if value is None else as_precision(name, value)
    if found is None and (said := config.current().matmul_precision) is not None:
        found = PRECISIONS[said]
    return {} if found is None else {"precision": found}


def resolved_precision(precision: Precision | None) -> Precision:
    """A precision where None is what the settings say.

    >>> resolved_precision(None)
    Precision.DEFAULT
    """
    said = config.current().matmul_precision or "default"
    return PRECISIONS[said] if precision is None else precision


def most_precise(*found: Precision | None) -> Precision | None:
    """The most exact of several precisions; None is what the settings say."""
    return max(found, key=lambda p: _ORDER.index(resolved_precision(p)))


_ORDER = list(Precision)
