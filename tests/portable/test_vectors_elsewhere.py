"""The vector layer and the mathematics of generated C for ARM in qemu, and for AVX2 here.

The laws are those of tests/c, on programs that the cross compiler of Debian makes. Every array ends
where memory does.
"""

import numpy as np
import pytest

from functrans.lowering.c.prelude import Prelude
from tests.c import test_math as math_laws
from tests.c import test_vectors as laws
from tests.portable.machines import ARM, ARM_GENERIC, ARM_MISSING, ARM_TOOLS, X86_AVX2, Executable
from tests.portable.machines import missing as missing_tools

accuracy = math_laws.accuracy
pytestmark = pytest.mark.portable
NATIVE = {"f32": 4, "f64": 2}
WIDTHS = [(ARM, 1), (ARM, 2), (ARM, 4), (ARM, 8), (ARM_GENERIC, 4), (X86_AVX2, 8)]
MANY = 1 << 16


@pytest.fixture(autouse=True)
def quiet():
    assert not missing_tools(ARM_TOOLS), ARM_MISSING
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("machine, lanes", WIDTHS, ids=str)
def test_every_operation(machine, lanes, tmp_path, record_property):
    p = Prelude(machine.isa)
    texts = [laws.loop_text(p, case, k, lanes) for k, case in enumerate(laws.CASES)]
    functions = {f"case_{k}": "p" * len(case.dtypes) + "pi" for k, case in enumerate(laws.CASES)}
    with Executable.of(machine, p.source() + "".join(texts), functions, tmp_path) as there:
        laws.assert_operations(there.call)
    record_property(f"operations on vectors, {machine}", len(functions))


@pytest.mark.parametrize("machine, lanes", WIDTHS, ids=str)
def test_memory(machine, lanes, tmp_path):
    p = Prelude(machine.isa)
    texts = [laws.memory_text(p, d, lanes) for d in laws.ALL]
    names = [f"{name}_{d}" for d in laws.ALL
             for name in ("load", "strided", "gather", "store", "fill",
                          *(f"reduce_{op}" for op in laws.reductions_of(d)
                            if d not in laws.HALVES))]
    functions = {f"run_{name}": "pppi" for name in names}
    with Executable.of(machine, p.source() + "".join(texts), functions, tmp_path) as there:
        laws.assert_memory(there.call, lanes)


@pytest.mark.parametrize("dtype, lanes", [("f32", 4), ("f64", 2), ("u8", 8), ("bf16", 4),
                                          ("i64", 4), ("f32", 8)])
def test_transposes(dtype, lanes, tmp_path):
    text = laws.transpose_text(Prelude(ARM.isa), dtype, lanes)
    with Executable.of(ARM, text, {"whole": "pipi", "part": "pipiii"}, tmp_path) as there:
        laws.assert_transpose(there.call, dtype, lanes)


SWEPT = """
void swept_{name}(long long step, double *worst) {{
  u32 where;
  *worst = sweep_{name}(0, step, &where);
}}
"""


def mathematics(machine, lanes, folder):
    """All functions on a machine; lanes are those of float32 and of float64."""
    text = accuracy.text(math_laws.NAMES, tuple(lanes.items()), machine.isa)
    text += "".join(SWEPT.format(name=name) for name in math_laws.UNARY)
    functions = {f"run_{name}_{d}": "pppi" for name in math_laws.NAMES for d in lanes}
    functions |= {f"swept_{name}": "ip" for name in math_laws.UNARY}
    folder.mkdir()
    return Executable.of(machine, text, functions, folder)


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    assert not missing_tools(ARM_TOOLS), ARM_MISSING
    with mathematics(ARM, NATIVE, tmp_path_factory.mktemp("arm") / "c") as there:
        yield there


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """The same with twice the lanes, one lane, and the vectors of AVX2."""
    folder = tmp_path_factory.mktemp("others")
    machines = [(ARM, {"f32": 8, "f64": 4}), (ARM, {"f32": 1, "f64": 1}),
                (X86_AVX2, {"f32": 8, "f64": 4})]
    found = [mathematics(machine, lanes, folder / str(k))
             for k, (machine, lanes) in enumerate(machines)]
    yield found
    for there in found:
        there.__exit__()


def evaluate(there, name, dtype, *operands):
    return accuracy.evaluate(there, name, dtype, *operands, call=Executable.call)


@pytest.mark.parametrize("dtype", math_laws.DTYPES)
@pytest.mark.parametrize("name", math_laws.NAMES)
def test_accuracy(name, dtype, arm, record_property):
    """Within the bounds of math_accuracy.md at all exponents, borders and special values."""
    operands = math_laws.grid(name, dtype)
    results = evaluate(arm, name, dtype, *operands)
    worst = math_laws.assert_accurate(name, dtype, operands, results)
    # of erf_inv in float32 the eager function has the same bits, which is not within 2 ulp
    kind = dtype + " of erf_inv" * ((name, dtype) in math_laws.BOUNDS)
    record_property(f"ulp of {kind} on {arm.machine}, against mpmath", worst)
    record_property(f"functions on {arm.machine}", 1)
    if name in math_laws.IN_NUMPY:
        math_laws.assert_special_values_of_numpy(
            name, dtype, lambda *x: evaluate(arm, name, dtype, *x))
    for other, x, y in math_laws.SPECIAL_VALUES:
        if other == name:
            math_laws.assert_special_values(x, y, dtype, lambda v: evaluate(arm, name, dtype, v))
    if name in math_laws.ANGLES:
        math_laws.assert_huge_angles(name, dtype, lambda v: evaluate(arm, name, dtype, v))


@pytest.mark.parametrize("name", math_laws.UNARY)
def test_float32_of_every_exponent(name, arm, record_property):
    """One in 1,999 of all float32 beside the float64 of the same function."""
    worst = np.zeros(1)
    arm.call(f"swept_{name}", 1999, worst)
    kind = "f32" + " of erf_inv" * ((name, "f32") in math_laws.BOUNDS)
    record_property(f"ulp of {kind} on {arm.machine}, all exponents", float(worst[0]))
    assert worst[0] <= math_laws.BOUNDS.get((name, "f32"), math_laws.BOUND)


@pytest.mark.parametrize("dtype", math_laws.DTYPES)
@pytest.mark.parametrize("name", math_laws.NAMES)
def test_bits_are_those_of_every_width_and_of_avx2(name, dtype, arm, others):
    """Of numbers of all exponents, in even steps over their bits, and special values."""
    kind = accuracy.FLOATS[dtype]
    bits = np.dtype(f"u{np.dtype(kind).itemsize}")
    step = (np.iinfo(bits).max // MANY) | 1
    x = (np.arange(MANY, dtype=np.uint64) * np.uint64(step)).astype(bits).view(kind)
    ends = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], kind)
    operands = [np.concatenate([*v, ends]) for v in zip(accuracy.points(name, dtype, 500, seed=3))]
    operands = [np.concatenate([v, x if k == 0 else np.random.default_rng(4).permutation(x)])
                for k, v in enumerate(operands)]
    expected = evaluate(arm, name, dtype, *operands)
    integers = np.where(np.isnan(expected), 0, expected.view(bits))
    for there in others:
        found = evaluate(there, name, dtype, *operands)
        np.testing.assert_array_equal(np.where(np.isnan(found), 0, found.view(bits)), integers)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
