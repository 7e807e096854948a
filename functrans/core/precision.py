"""How exactly products of float32 are computed where the hardware offers faster ways."""

from __future__ import annotations

from enum import Enum

__all__ = ["PRECISIONS", "Precision"]


class Precision(Enum):
    """Of products on GPUs: DEFAULT is one pass of TensorFloat-32, HIGH three, HIGHEST float32.

    >>> Precision("highest")
    Precision.HIGHEST
    """

    DEFAULT = "default"
    HIGH = "high"
    HIGHEST = "highest"

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


PRECISIONS = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "tensorfloat32": Precision.DEFAULT, "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST}
"""The words for precisions: what a word names is computed so, or more exactly."""
