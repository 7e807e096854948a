"""How exactly products of float32 are computed where the hardware offers faster ways."""

from __future__ import annotations

from enum import Enum
from typing import Any

from functrans.core.record import Record

__all__ = ["PRECISIONS", "DotAlgorithm", "DotAlgorithmPreset", "Precision"]


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


class DotAlgorithm(Record):
    """How a product is to be computed: the types of its factors, and of its sums.

    It is met by the fastest precision that is as exact; see `precision`.

    >>> DotAlgorithm("float32", "float32", "float32").precision
    Precision.HIGHEST
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False

    @property
    def precision(self) -> Precision | None:
        """The precision that is as exact; None where there is none, as of integers."""
        types = [_BITS.get(_name(t)) for t in (self.lhs_precision_type, self.rhs_precision_type,
                                               self.accumulation_type)]
        if None in types or self.lhs_component_count != self.rhs_component_count:
            return None
        bits = max([b for b in types[:2] if b is not None]) * self.lhs_component_count
        return Precision.DEFAULT if bits <= 11 else Precision.HIGH if bits <= 22 \
            and self.num_primitive_operations >= 3 else Precision.HIGHEST


_BITS = {"float8": 4, "bfloat16": 8, "float16": 11, "tf32": 11, "float32": 24, "float64": 53}
"""Of the fraction of a factor, with the one in front of it."""


def _name(dtype: Any) -> str:
    name = getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    if name.lower() in ("tf32", "tensorfloat32"):
        return "tf32"
    return "float8" if name.startswith("float8") else name


class DotAlgorithmPreset(Enum):
    """Names of algorithms of products: types of both factors and of the sums, and passes.

    >>> DotAlgorithmPreset.BF16_BF16_F32_X3.precision
    Precision.HIGH
    """

    DEFAULT = "default"
    ANY_F8_ANY_F8_F32 = "any_f8_any_f8_f32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "any_f8_any_f8_f32_fast_accum"
    ANY_F8_ANY_F8_ANY = "any_f8_any_f8_any"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "any_f8_any_f8_any_fast_accum"
    F16_F16_F16 = "f16_f16_f16"
    F16_F16_F32 = "f16_f16_f32"
    BF16_BF16_BF16 = "bf16_bf16_bf16"
    BF16_BF16_F32 = "bf16_bf16_f32"
    BF16_BF16_F32_X3 = "bf16_bf16_f32_x3"
    BF16_BF16_F32_X6 = "bf16_bf16_f32_x6"
    BF16_BF16_F32_X9 = "bf16_bf16_f32_x9"
    TF32_TF32_F32 = "tf32_tf32_f32"
    TF32_TF32_F32_X3 = "tf32_tf32_f32_x3"
    F32_F32_F32 = "f32_f32_f32"
    F64_F64_F64 = "f64_f64_f64"

    @property
    def precision(self) -> Precision | None:
        """The precision that is as exact, or more; None is what the settings say."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        if self.name.endswith("X3"):
            return Precision.HIGH
        exact = self.name.endswith(("X6", "X9")) or self.name[:3] in ("F32", "F64")
        return Precision.HIGHEST if exact else Precision.DEFAULT

    def __str__(self) -> str:
        return self.name
