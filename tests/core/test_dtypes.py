"""Promotion against a table of every pair of dtypes, defaults in scope, names and limits."""

import itertools
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from functrans.core import dtypes
from functrans.core.dtype_queries import issubdtype
from functrans.core.errors import (
    ArgumentError,
    DTypeError,
    IntegerOverflowError,
    PromotionError,
)

TABLE = json.loads((Path(__file__).parent.parent / "data" / "promotion.json").read_text())
ORDER = TABLE["order"].split()


class Typed:
    """Stands for an array: a dtype and a weak type."""

    def __init__(self, name: str) -> None:
        self.dtype = np.dtype(name.rstrip("*"))
        self.weak_type = name.endswith("*")


def promote(names: list[str]) -> str:
    try:
        dtype, weak = dtypes.result_type(*map(Typed, names), return_weak_type=True)
    except PromotionError:
        return "error"
    return dtype.name + "*" * weak


@pytest.mark.parametrize("row", ORDER)
def test_pairs_promote_as_in_the_table(row: str) -> None:
    with dtypes.default_dtypes("float64", "int64"):
        got = {column: promote([row, column]) for column in ORDER}
    assert got == dict(zip(ORDER, TABLE["pairs"][row].split(), strict=True))


def test_triples_promote_as_in_the_table_in_any_order() -> None:
    with dtypes.default_dtypes("float64", "int64"):
        for names, expected in TABLE["triples"].items():
            for permuted in itertools.permutations(names.split(",")):
                assert promote(list(permuted)) == expected, permuted


def strong_pairs() -> Iterator[tuple[str, str]]:
    yield from itertools.product([n for n in ORDER if not n.endswith("*")], repeat=2)


def test_promotion_is_a_least_upper_bound() -> None:
    """Symmetric, idempotent, and joining with the result again changes nothing."""
    for a, b in strong_pairs():
        try:
            top = dtypes.promote_types(a, b)
        except PromotionError:
            with pytest.raises(PromotionError):
                dtypes.promote_types(b, a)
            continue
        assert dtypes.promote_types(b, a) == top
        assert dtypes.promote_types(a, a) == np.dtype(a)
        if {a, b} & {"uint64"} and "int" in top.name + a + b and top.name.startswith("float"):
            continue  # uint64 with a signed int is a weak float, which other types may narrow
        assert dtypes.promote_types(a, top) == top


@pytest.mark.parametrize(
    ("args", "expected", "weak"),
    [
        ((1,), "int32", True),
        ((1.0,), "float32", True),
        ((1j,), "complex64", True),
        ((True,), "bool", False),
        ((True, 1), "int32", True),
        ((np.float16(1), 2.0), "float16", False),
        ((np.int8(1), 2), "int8", False),
        ((np.int8(1), 2.0), "float32", True),
        ((np.int64(1), 2.0), "float32", True),
        ((np.float64(1), 1), "float64", False),
        ((np.zeros(2, ml_dtypes.bfloat16), 1j), "complex64", False),
        ((np.int8(1), 1j), "complex64", True),
        ((int, float), "float32", True),
        (("uint8", "int8"), "int16", False),
        ((np.uint64(1), np.int64(1)), "float32", True),
        ((np.float32, "float64"), "float64", False),
    ],
)
def test_result_type_with_float32_defaults(args: Any, expected: str, weak: bool) -> None:
    assert dtypes.result_type(*args, return_weak_type=True) == (np.dtype(expected), weak)
    assert dtypes.result_type(*args) == np.dtype(expected)


def test_python_float_weakens_narrow_complex_the_same_way_in_both_scopes() -> None:
    for names in (("float64", "int64"), ("float32", "int32")):
        with dtypes.default_dtypes(*names):
            assert dtypes.result_type(np.complex64(1), 2.0) == np.complex64
            assert dtypes.result_type(np.float16(1), 2.0) == np.float16


def test_a_wide_weak_value_is_not_narrowed_by_the_default() -> None:
    """A weak float64 made in a 64-bit scope keeps its width among weak values outside of it."""
    assert dtypes.result_type(Typed("float64*"), 1.0, return_weak_type=True) == (
        np.dtype("float64"),
        True,
    )
    assert dtypes.result_type(Typed("float64*"), np.float32(1)) == np.float32


def test_default_dtypes_hold_in_their_scope_and_thread() -> None:
    seen = []
    with dtypes.default_dtypes("float64", "int64"):
        assert dtypes.default_float() == np.float64
        assert dtypes.default_int() == np.int64
        assert dtypes.default_complex() == np.complex128
        with dtypes.default_dtypes(float_dtype="bfloat16"):
            assert dtypes.canonical_scalar(1.0) == dtypes.bfloat16
            assert dtypes.default_complex() == np.complex64
            assert dtypes.default_int() == np.int64
        thread = threading.Thread(target=lambda: seen.append(dtypes.default_float()))
        thread.start()
        thread.join()
    assert seen == [np.dtype("float32")]
    assert dtypes.default_float() == np.float32
    with pytest.raises(ZeroDivisionError), dtypes.default_dtypes("float64"):
        raise ZeroDivisionError
    assert dtypes.default_float() == np.float32


@pytest.mark.parametrize(("field", "value"), [("float_dtype", "int32"), ("int_dtype", "uint8")])
def test_default_dtypes_refuses_other_kinds(field: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=f"{field} is {value}"):
        dtypes.default_dtypes(**{field: value})


def test_python_int_that_overflows_names_value_dtype_and_fix() -> None:
    assert dtypes.canonical_scalar(2**31 - 1) == np.int32
    assert dtypes.canonical_scalar(-(2**31)) == np.int32
    with pytest.raises(OverflowError) as caught:
        dtypes.canonical_scalar(2**31)
    assert isinstance(caught.value, IntegerOverflowError)
    text = str(caught.value)
    assert "2147483648 does not fit int32" in text
    assert 'Fix: np.int64(2147483648), or: with ft.default_dtypes(int_dtype="int64"): ...' in text
    with dtypes.default_dtypes(int_dtype="int64"):
        assert dtypes.canonical_scalar(2**31) == np.int64
        with pytest.raises(OverflowError, match=r"np\.uint64\(9223372036854775808\)"):
            dtypes.canonical_scalar(2**63)
        with pytest.raises(OverflowError, match=r"float\(x\), which rounds it"):
            dtypes.canonical_scalar(2**64)


def test_check_int_takes_the_range_of_the_dtype() -> None:
    dtypes.check_int(255, np.dtype("uint8"))
    dtypes.check_int(2**63, np.dtype("uint64"))
    for value in (-1, 256):
        with pytest.raises(IntegerOverflowError, match="uint8"):
            dtypes.check_int(value, np.dtype("uint8"))


@pytest.mark.parametrize("bad", [None, "no such dtype", object(), [1.0]])
def test_what_is_no_dtype_is_refused(bad: Any) -> None:
    with pytest.raises(DTypeError, match="no dtype can be told from"):
        dtypes.as_dtype(bad)


@pytest.mark.parametrize("bad", [object, str, "datetime64[s]", np.longdouble, "S3"])
def test_dtypes_that_arrays_cannot_have_are_refused(bad: Any) -> None:
    with pytest.raises(DTypeError, match="not supported"):
        dtypes.as_dtype(bad)
    with pytest.raises(DTypeError):
        dtypes.result_type(np.zeros(2, bad), np.float32(1))


def test_foreign_byte_order_becomes_native() -> None:
    assert dtypes.as_dtype(">f4").isnative
    assert dtypes.result_type(np.zeros(2, ">f4")).isnative
    assert dtypes.result_type(np.zeros(2, ">f4"), np.float32(1)) == np.float32


@pytest.mark.parametrize(
    ("name", "short"),
    [("bool", "bool"), ("int64", "i64"), ("uint8", "u8"), ("float16", "f16"),
     ("bfloat16", "bf16"), ("complex128", "c128"), ("float8_e4m3fn", "f8_e4m3fn"),
     ("uint4", "u4")],
)  # fmt: skip
def test_short_names(name: str, short: str) -> None:
    assert dtypes.short_name(np.dtype(name)) == short


def test_float0_holds_nothing_and_does_not_promote() -> None:
    assert dtypes.float0.itemsize == 0
    assert dtypes.short_name(dtypes.float0) == "float0"
    with pytest.raises(PromotionError):
        dtypes.result_type(np.zeros(2, dtypes.float0), np.float32(1))


@pytest.mark.parametrize(
    ("dtype", "of", "expected"),
    [
        ("bfloat16", np.floating, True),
        ("bfloat16", np.inexact, True),
        ("bfloat16", np.number, True),
        ("bfloat16", np.integer, False),
        ("float8_e5m2", np.floating, True),
        ("int4", np.signedinteger, True),
        ("uint4", np.unsignedinteger, True),
        ("uint4", np.signedinteger, False),
        ("bool", np.number, False),
        ("bool", np.bool_, True),
        ("complex64", np.complexfloating, True),
        ("complex64", np.inexact, True),
        ("float32", "float32", True),
        ("float32", np.float64, False),
        (np.floating, np.inexact, True),
        (np.floating, np.integer, False),
        (np.float32(1), np.floating, True),
    ],
)
def test_issubdtype(dtype: Any, of: Any, expected: bool) -> None:
    assert issubdtype(dtype, of) is expected


def test_inexact_real_complex_and_half() -> None:
    assert dtypes.to_inexact_dtype(np.dtype("int8")) == np.float32
    assert dtypes.to_inexact_dtype(np.dtype("bool")) == np.float32
    assert dtypes.to_inexact_dtype(dtypes.bfloat16) == dtypes.bfloat16
    with dtypes.default_dtypes("float64"):
        assert dtypes.to_inexact_dtype(np.dtype("int8")) == np.float64
    assert dtypes.real_dtype(np.dtype("complex128")) == np.float64
    assert dtypes.complex_dtype(np.dtype("float64")) == np.complex128
    assert dtypes.complex_dtype(dtypes.bfloat16) == np.complex64
    assert [dtypes.is_half(np.dtype(n)) for n in ("float16", "bfloat16", "float32", "int8")] == [
        True,
        True,
        False,
        False,
    ]


def test_limits() -> None:
    assert float(dtypes.finfo("bfloat16").max) == pytest.approx(3.39e38, rel=1e-2)
    assert dtypes.finfo(np.float32).eps == np.finfo(np.float32).eps
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("int4").max) == (-8, 7)


def test_weak_values() -> None:
    assert dtypes.is_weak(1) and dtypes.is_weak(1j) and not dtypes.is_weak(True)
    assert dtypes.is_weak(Typed("float32*")) and not dtypes.is_weak(Typed("float32"))
    assert not dtypes.is_weak(np.float64(1.0))
    with pytest.raises(ArgumentError):
        dtypes.result_type()
