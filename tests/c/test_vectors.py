"""Every operation of the C vector layer on edge values, for each instruction set that runs here."""

import ctypes
import itertools
import mmap
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from functrans.lowering.c.isa import (
    AVX2,
    AVX512,
    COMMON_FLAGS,
    GENERIC,
    NEON,
    host_isa,
    isa_of,
)
from functrans.lowering.c.prelude import Prelude
from functrans.lowering.c.vectors import builder
from functrans.primitives import arithmetic, compare
from functrans.primitives.convert import convert_element_type_p

needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc")

NUMPY = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
         "bool": np.bool_, **{f"{k}{n}": np.dtype(f"{k}{n // 8}")
                              for k in "iu" for n in (8, 16, 32, 64)}}
FLOATS, HALVES = ("f32", "f64"), ("f16", "bf16")
INTS = tuple(d for d in NUMPY if d[0] in "iu")
ALL = (*FLOATS, *HALVES, *INTS, "bool")
ISAS = {"avx512": AVX512, "avx2": AVX2, "generic": GENERIC}
CONFIGURATIONS = [("avx512", 1), ("avx512", 4), ("avx512", 8), ("avx512", 16), ("avx512", 32),
                  ("avx2", 4), ("avx2", 8), ("avx2", 16), ("generic", 4), ("generic", 8)]


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@dataclass(frozen=True)
class Case:
    """An expression of a, b, c (and the index vector), its operands, and what NumPy makes of it."""

    name: str
    dtypes: tuple[str, ...]
    out: str
    expression: Callable[[Prelude, int], str]
    reference: Callable
    exact_zero: bool = True


def operation(name, dtypes, out, reference, **options):
    def expression(p, lanes):
        return p.op(name, dtypes, ("a", "b", "c")[:len(dtypes)], lanes)
    return Case(f"{name}({', '.join(dtypes)})", dtypes, out, expression, reference, **options)


def in_float32(function):
    """A function of half types, computed in float32 and rounded."""
    return lambda *x: np.asarray(function(*[v.astype(np.float32) for v in x])).astype(x[0].dtype)


def round_away(x):
    t = np.trunc(x)
    return np.where(np.abs(x - t) >= 0.5, t + np.copysign(1, x), t).astype(x.dtype)


def fused(a, b, c):
    """a * b + c rounded once: in rationals, where the operands are finite."""
    out = np.where(np.isfinite(a) & np.isfinite(b) & ~np.isfinite(c), c, a * b + c)
    for i in np.flatnonzero(np.isfinite(a) & np.isfinite(b) & np.isfinite(c)):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        if exact and abs(exact) < np.finfo(a.dtype).max:
            # int / int rounds correctly
            out[i] = float(exact) if a.dtype == np.float64 else round_to_float32(exact)
    return out


def round_to_float32(exact):
    wide = float(exact)
    near = np.float32(wide)
    other = np.nextafter(near, np.float32(np.inf if wide > near else -np.inf))
    return min((near, other),
               key=lambda v: (abs(Fraction(float(v)) - exact), v.view(np.uint32) & 1))


def cases():
    prim = {"add": arithmetic.add_p, "sub": arithmetic.sub_p, "mul": arithmetic.mul_p,
            "div": arithmetic.div_p, "rem": arithmetic.rem_p, "max": arithmetic.max_p,
            "min": arithmetic.min_p}
    relations = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
                 "gt": np.greater, "ge": np.greater_equal}
    for d in (*FLOATS, *INTS):
        for name, p in prim.items():
            yield operation(name, (d, d), d, p.evaluate, exact_zero=name not in ("max", "min"))
        for name, p in (("neg", arithmetic.neg_p), ("abs", arithmetic.abs_p),
                        ("sign", arithmetic.sign_p)):
            yield operation(name, (d,), d, p.evaluate)
        yield operation("square", (d,), d, lambda x: x * x)
    for d in (*FLOATS, *INTS, "bool"):
        for name, f in relations.items():
            yield operation(name, (d, d), "bool", f)
        yield operation("select", ("bool", d, d), d, lambda m, x, y: np.where(m, x, y))
    for d in FLOATS:
        yield operation("fma", (d, d, d), d, fused)
        for name, f in (("floor", np.floor), ("ceil", np.ceil), ("round", np.rint),
                        ("trunc", np.trunc), ("sqrt", np.sqrt), ("round_away", round_away)):
            yield operation(name, (d,), d, f)
        yield operation("copysign", (d, d), d, np.copysign)
        yield operation("is_finite", (d,), "bool", np.isfinite)
    for d in (*FLOATS, *HALVES):
        yield operation("nextafter", (d, d), d, arithmetic.nextafter_p.evaluate)
    for d in HALVES:
        for name, f in (("add", np.add), ("mul", np.multiply), ("max", np.maximum)):
            yield operation(name, (d, d), d, in_float32(f), exact_zero=name != "max")
        yield operation("lt", (d, d), "bool", np.less)
    for d in INTS:
        for name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
            yield operation(name, (d, d), d, getattr(compare, f"{name}_p").evaluate)
            yield Case(f"{name}({d}, 3)", (d,), d,
                       lambda p, lanes, name=name, d=d: p.op(name, (d, d), ("a", "3"), lanes),
                       lambda x, name=name: getattr(compare, f"{name}_p").evaluate(
                           x, x.dtype.type(3)))
        for name in ("div", "rem"):
            yield Case(f"{name}({d}, 7)", (d,), d,
                       lambda p, lanes, name=name, d=d: p.op(
                           name, (d, d), ("a", p.broadcast(d, lanes, p.literal(7, d))), lanes),
                       lambda x, name=name: getattr(arithmetic, f"{name}_p").evaluate(
                           x, x.dtype.type(7)))
        for name in ("population_count", "clz"):
            yield operation(name, (d,), d, getattr(compare, f"{name}_p").evaluate)
    for d in (*INTS, "bool"):
        for name in ("and", "or", "xor"):
            yield operation(name, (d, d), d, getattr(compare, f"{name}_p").evaluate)
        yield operation("not", (d,), d, np.invert)
    for source, target in itertools.product(ALL, ALL):
        yield Case(f"convert({source}, {target})", (source,), target,
                   lambda p, lanes, s=source, t=target: p.convert(s, t, "a", lanes),
                   lambda x, t=target: convert_element_type_p.evaluate(
                       x, new_dtype=np.dtype(NUMPY[t])))
    for source, target in itertools.product(ALL, ALL):
        if "bool" not in (source, target) \
                and np.dtype(NUMPY[source]).itemsize == np.dtype(NUMPY[target]).itemsize:
            yield Case(f"bitcast({source}, {target})", (source,), target,
                       lambda p, lanes, s=source, t=target: p.bitcast(s, t, "a", lanes),
                       lambda x, t=target: x.view(NUMPY[t]))
    for d in (*FLOATS, "i8", "i32", "u32", "i64"):
        yield Case(f"iota({d})", (d,), d,
                   lambda p, lanes, d=d: p.iota(d, lanes, "i + 16777201"),
                   lambda x: (np.arange(x.size) + 16777201).astype(x.dtype))
    for d, value in (("f32", -0.0), ("f64", np.nan), ("f32", np.inf), ("f64", 0.1), ("bool", True),
                     ("f32", 2.0**-149), ("i32", -2**31), ("i64", -2**63), ("u64", 2**64 - 1),
                     ("i8", -128), ("u32", 2**32 - 1), ("bf16", 1.5), ("f64", -np.inf)):
        yield Case(f"literal({d}, {value})", (d,), d,
                   lambda p, lanes, d=d, x=value: p.broadcast(d, lanes, p.literal(x, d)),
                   lambda a, x=value: np.full(a.shape, x, a.dtype))
    for d in ALL:
        for index in ("i32", "i64"):
            yield Case(f"gather({d}, {index})", (d, index), d,
                       lambda p, lanes, d=d, i=index: p.gather(d, lanes, "pa", "b & 15", i),
                       lambda x, i: x[i & 15])
    yield operation("mul_high", ("u32", "u32"), "u32", lambda x, y: (
        x.astype(np.uint64) * y >> np.uint64(32)).astype(np.uint32))


CASES = list(cases())

EDGES = {
    "f": [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.49999997, 3.7,
          -3.7, 127.5, 128.0, -128.0, -129.0, 255.0, 256.0, 32767.5, -32769.0, 65504.0, 65520.0,
          65519.999, 6e-8, 2.98e-8, 2.9802326e-8, -5e-8, 1.0009765625, 1.00048828125, 1.00390625,
          8388607.5, 8388609.0, 2147483520.0, 2147483647.0, 2.0**31, -(2.0**31), 2.0**32, 2.0**52,
          2.0**52 + 0.5, 2.0**62, 2.0**63, -(2.0**63), 2.0**64, 1e20, -1e20, 3.4e38, -3.4e38,
          2.0**-126, 2.0**-149, -(2.0**-149), 1e-40, 1e300, -1e-300, 5e-324, -2.2250738585e-308],
    "i": [0, 1, -1, 2, -2, 3, 7, -7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, -128, 128, 255,
          -32768, 32767, 65535, 16777217, 2**31 - 1, -2**31, 2**32 - 1, 2**53 + 1, 2**63 - 1,
          -2**63, 2**64 - 1],
}


def values(dtype, rng):
    if dtype == "bool":
        return np.array([False, True])
    target = np.dtype(NUMPY[dtype])
    if dtype in INTS:
        info = np.iinfo(target)
        edges = [v for v in EDGES["i"] if info.min <= v <= info.max]
        more = rng.integers(info.min, info.max, 8, target, endpoint=True)
        return np.concatenate([np.array(edges, target), more])
    bits = np.dtype(f"u{target.itemsize}")
    noise = rng.integers(0, np.iinfo(bits).max, 12, bits, endpoint=True).view(target)
    return np.concatenate([np.array(EDGES["f"]).astype(target), noise])


def operands(dtypes, rng):
    """All pairs of edge values; a third operand runs along."""
    sets = [values(d, rng) for d in dtypes]
    if len(sets) == 3 and dtypes[0] == "bool":
        pairs = [np.array(x) for x in zip(*itertools.product(sets[1], sets[2][:9]))]
        pairs = [p.astype(s.dtype) for p, s in zip(pairs, sets[1:])]
        arrays = [rng.integers(0, 2, pairs[0].size).astype(np.bool_), *pairs]
    else:
        grid = np.meshgrid(*[np.arange(s.size) for s in sets[:2]], indexing="ij")
        arrays = [s[g.ravel()] for s, g in zip(sets, grid)]
        if len(sets) == 3:
            arrays.append(rng.permutation(np.resize(sets[2], arrays[0].size)))
            some = rng.choice(arrays[0].size, 801, replace=False)
            arrays = [x[some] for x in arrays]
    size = arrays[0].size
    if size % 2 == 0:  # a tail for every number of lanes
        arrays = [np.append(x, x[:1]) for x in arrays]
    return [np.ascontiguousarray(x) for x in arrays]


def loop_text(p, case, k, lanes):
    params = ", ".join(f"const {p.stored_type(d)} *p{n}" for d, n in zip(case.dtypes, "abc"))
    reads = lambda count: " ".join(
        f"{p.vtype(d, lanes)} {n} = {p.load(d, lanes, f'p{n} + i', count)};"
        for d, n in zip(case.dtypes, "abc"))
    value = case.expression(p, lanes)
    write = lambda count: p.store(case.out, lanes, "r + i", value, count)
    return (f"void case_{k}({params}, {p.stored_type(case.out)} *r, i64 n) {{ i64 i = 0; "
            f"for (; i + {lanes} <= n; i += {lanes}) {{ {reads(None)} {write(None)}; }} "
            f"if (i < n) {{ {reads('n - i')} {write('n - i')}; }} }}\n")


def compiled(text, isa, folder):
    source, target = folder / "v.c", folder / "v.so"
    source.write_text(text)
    subprocess.run(["gcc", *COMMON_FLAGS, *isa.flags, "-Wall", "-Wno-unused", "-Werror",
                    "-shared", "-o", target, source, "-lm"], check=True)
    return ctypes.CDLL(str(target))


def caller(library):
    """Calls a function of a library of this process by its name, on arrays and integers."""
    return lambda name, *args: library[name](
        *[ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_longlong(a)
          for a in args])


def runs_here(isa):
    order = ["generic", "avx2", "avx512"]
    host = host_isa().name
    return host in order and order.index(isa.name) <= order.index(host)


def isa_or_skip(name):
    if not runs_here(ISAS[name]):
        pytest.skip(f"this machine has no {name}")
    return ISAS[name]


def same(x, y, exact_zero=True):
    if x.dtype.kind not in "biu":
        x, y = x.astype(np.float64), y.astype(np.float64)
        equal = (x == y) | (np.isnan(x) & np.isnan(y))
        return equal & ((np.signbit(x) == np.signbit(y)) | np.isnan(x)) if exact_zero else equal
    return x == y


@pytest.mark.one_in(3)
@needs_gcc
@pytest.mark.parametrize("isa, lanes", [  # those that differ in what gcc makes of them: 3 s each
    pytest.param(*c, marks=pytest.mark.thorough if c == ("avx512", 32) else ())  # that one 24 s
    for c in CONFIGURATIONS if c not in (("avx2", 4), ("avx2", 16), ("generic", 8))])
def test_operations(isa, lanes, tmp_path):
    p = Prelude(isa_or_skip(isa))
    texts = [loop_text(p, case, k, lanes) for k, case in enumerate(CASES)]
    assert_operations(caller(compiled(p.source() + "".join(texts), p.isa, tmp_path)))


def assert_operations(call):
    """All cases by their number: `call(function, *arrays, length)` writes the last array."""
    rng = np.random.default_rng(0)
    wrong = []
    for k, case in enumerate(CASES):
        arrays = operands(case.dtypes, rng)
        expected = np.asarray(case.reference(*arrays))
        out = np.zeros(arrays[0].shape, NUMPY[case.out])
        call(f"case_{k}", *arrays, out, out.size)
        assert expected.dtype == out.dtype, case.name
        bad = np.flatnonzero(~same(out, expected, case.exact_zero))
        if bad.size:
            i = bad[0]
            wrong.append(f"{case.name}: {bad.size} of {out.size}; {[a[i] for a in arrays]} gives "
                         f"{out[i]!r}, not {expected[i]!r}")
    assert not wrong, "\n".join(wrong)


REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum,
              "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}


def reductions_of(dtype):
    if dtype in FLOATS:
        return ("add", "mul", "max", "min")
    return ("and", "or", "max", "min") if dtype == "bool" else tuple(REDUCTIONS)


def memory_text(p, d, lanes):
    """Loads, stores, strided and gathered loads, reductions with a count (negative: all lanes)."""
    s, v = p.stored_type(d), p.vtype(d, lanes)
    both = lambda read: (f"{v} v; if (n < 0) v = {read(None)}; else v = {read('n')}; "
                         f"{p.store(d, lanes, 'r', 'v')};")
    params = f"const {s} *p, const i64 *index, {s} *r, i64 n"
    function = lambda name, body: f"void run_{name}_{d}({params}) {{ {body} }}\n"
    fill = p.load_scalar(d, "p")
    text = [
        function("load", both(lambda n: p.load(d, lanes, "p", n))),
        function("strided", both(lambda n: p.strided(d, lanes, "p", "3", n))),
        function("gather", f"{p.vtype('i64', lanes)} i = "
                 f"{p.load('i64', lanes, 'index', 'n < 0 ? ' + str(lanes) + ' : n')}; "
                 + both(lambda n: p.gather(d, lanes, "p", "i", "i64", n))),
        function("store", f"{v} v = {p.load(d, lanes, 'p')}; if (n < 0) "
                 f"{p.store(d, lanes, 'r', 'v')}; else {p.store(d, lanes, 'r', 'v', 'n')};"),
        function("fill", f"{v} v = {p.load(d, lanes, 'p')}; v = "
                 f"{p.select_tail(d, lanes, 'v', 'n', fill)}; {p.store(d, lanes, 'r', 'v')};"),
    ]
    text += [function(f"reduce_{op}", f"{v} v = {p.load(d, lanes, 'p')}; "
                      f"{p.store_scalar(d, 'r', p.reduce(op, d, lanes, 'v'))};")
             for op in reductions_of(d) if d not in HALVES]
    return "".join(text)


def bits_of(x):
    return x.view(f"u{x.dtype.itemsize}")


@pytest.mark.one_in(3)
@needs_gcc
@pytest.mark.parametrize("isa, lanes", CONFIGURATIONS)
def test_memory(isa, lanes, tmp_path):
    p = Prelude(isa_or_skip(isa))
    texts = [memory_text(p, d, lanes) for d in ALL]
    assert_memory(caller(compiled(p.source() + "".join(texts), p.isa, tmp_path)), lanes)


def assert_memory(call, lanes):
    """Every function of `memory_text` for every count."""
    rng = np.random.default_rng(1)
    index = rng.permutation(3 * lanes)[:lanes].astype(np.int64)
    for d in ALL:
        dtype = np.dtype(NUMPY[d])
        x = np.ones(3 * lanes, dtype)
        choices = values(d, rng)
        x[:] = rng.choice(choices[choices == choices], x.size)
        for n in (-1, *range(lanes + 1)):
            count = lanes if n < 0 else n
            for name, source in (("load", x[:lanes]), ("strided", x[::3]), ("gather", x[index])):
                # what must not be read lies beyond the end: the source is cut off there
                last = {"load": count, "strided": 3 * count - 2, "gather": x.size}[name]
                out = np.empty(lanes, dtype)
                call(f"run_{name}_{d}", x[:max(last, 0)].copy(), index, out, n)
                assert np.array_equal(bits_of(out[:count]), bits_of(source[:count])), (name, d, n)
                assert not bits_of(out[count:]).any(), (name, d, n)
            out = np.resize(choices[-1:], lanes + 1)
            canary = out.copy()
            call(f"run_store_{d}", x, index, out, n)
            assert np.array_equal(bits_of(out[:count]), bits_of(x[:count])), ("store", d, n)
            assert np.array_equal(bits_of(out[count:]), bits_of(canary[count:])), ("store", d, n)
            call(f"run_fill_{d}", x, index, out, count)
            expected = np.where(np.arange(lanes) < count, x[:lanes], x[0])
            assert np.array_equal(bits_of(out[:lanes]), bits_of(expected)), ("fill", d, n)
        for op in reductions_of(d) if d not in HALVES else ():
            check_reduction(call, op, x[:lanes], d, index, rng)


def check_reduction(call, op, x, d, index, rng):
    tests = [x]
    if d in FLOATS:
        tests = [rng.normal(size=x.size).astype(x.dtype)]
        if op in ("max", "min"):
            tests += [np.where(np.arange(x.size) == k, np.nan, tests[0]).astype(x.dtype)
                      for k in range(x.size)]
    elif d == "bool":
        tests += [np.zeros_like(x), np.ones_like(x),
                  *(np.arange(x.size) == k for k in range(x.size)),
                  *(np.arange(x.size) != k for k in range(x.size))]
    for t in tests:
        out = np.empty(1, x.dtype)
        call(f"run_reduce_{op}_{d}", t, index, out, 0)
        expected = t.copy()
        while expected.size > 1:  # the tree
            half = expected.size // 2
            expected = REDUCTIONS[op](expected[:half], expected[half:])
        assert np.array_equal(out, expected, equal_nan=d in FLOATS), (op, d, t)


def page_end(x):
    """A copy of x that ends where memory does: the next page may not be touched."""
    page = mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    region = mmap.mmap(-1, 2 * page)
    buffer = np.frombuffer(region, np.uint8)
    end = ctypes.c_void_p(buffer.ctypes.data + page)
    assert libc.mprotect(end, ctypes.c_size_t(page), 0) == 0
    view = buffer[page - x.nbytes:page].view(x.dtype)
    view[:] = x
    return view, lambda: libc.mprotect(end, ctypes.c_size_t(page), 3)


@needs_gcc
@pytest.mark.parametrize("isa, lanes", [("avx512", 16), ("avx512", 4), ("avx2", 8), ("generic", 4)])
def test_a_counted_load_or_store_does_not_touch_the_next_page(isa, lanes, tmp_path):
    p = Prelude(isa_or_skip(isa))
    dtypes = ("f32", "f64", "u8", "bf16", "bool", "i32", "i64", "i16")
    texts = [memory_text(p, d, lanes) for d in dtypes]
    call = caller(compiled(p.source() + "".join(texts), p.isa, tmp_path))
    index = np.zeros(lanes, np.int64)
    for d in dtypes:
        x = np.ones(lanes, NUMPY[d])
        for n in range(1, lanes + 1):
            edge, unprotect = page_end(x[:n])
            out = np.zeros(lanes, NUMPY[d])
            call(f"run_load_{d}", edge, index, out, n)
            call(f"run_store_{d}", out, index, edge, n)
            assert np.array_equal(out[:n], x[:n])
            unprotect()


@needs_gcc
@pytest.mark.parametrize("isa, dtype, lanes", [
    ("avx512", "f32", 16), ("avx512", "f64", 8), ("avx512", "u8", 16), ("avx512", "bf16", 16),
    ("avx2", "f32", 8), ("avx2", "f64", 4), ("generic", "f32", 4), ("generic", "i64", 4)])
def test_transpose(isa, dtype, lanes, tmp_path):
    p = Prelude(isa_or_skip(isa))
    text = transpose_text(p, dtype, lanes)
    assert_transpose(caller(compiled(text, p.isa, tmp_path)), dtype, lanes)


def transpose_text(p, dtype, lanes):
    whole, part = p.transpose(dtype, lanes), p.transpose(dtype, lanes, part=True)
    s = p.stored_type(dtype)
    params = f"const {s} *a, i64 as, {s} *r, i64 rs"
    return (p.source() + f"void whole({params}) {{ {whole}(a, as, r, rs); }}\n"
            f"void part({params}, i64 n, i64 m) {{ {part}(a, as, r, rs, n, m); }}\n")


def assert_transpose(call, dtype, lanes):
    a = np.arange(lanes * (lanes + 3)).reshape(lanes, lanes + 3).astype(NUMPY[dtype])
    r = np.zeros((lanes, lanes + 1), NUMPY[dtype])
    call("whole", a, lanes + 3, r, lanes + 1)
    assert np.array_equal(r[:, :lanes], a[:, :lanes].T) and not r[:, lanes].any()
    r[:] = 0
    call("part", a, lanes + 3, r, lanes + 1, lanes - 1, 2)
    assert np.array_equal(r[:2, :lanes - 1], a[:lanes - 1, :2].T)
    assert not r[2:].any() and not r[:, lanes - 1:].any()


TEMPLATE = """\
/* read by nobody */
//: table needs
static const S table_V[4] = {1, 2, 4, 8};
//: probe_V needs table_V gather_V eqi_V selecti_V splati_V lt_V select_V splat_V fma_V
//:+ toint_V fromint_V isnan_V mor_V any_V todouble_V sqrt_D tofloat_V lt_D splat_D
//:+ mtofloat_V
INL F probe_V(F x) {
  I i = toint_V(x) & 3;
  i = selecti_V(eqi_V(i, splati_V(3)), splati_V(0), i);
  F g = gather_V(table_V, i);
  M m = mor_V(lt_V(x, splat_V(0)), isnan_V(x));
  if (any_V(m)) g = select_V(m, splat_V(-1), g);
  D d = sqrt_D(todouble_V(g));
  MD n = lt_D(d, splat_D(0));
  return select_V(mtofloat_V(n), fromint_V(i), fma_V(g, x, tofloat_V(d)));
}
"""


@needs_gcc
@pytest.mark.parametrize("isa, lanes", [("avx512", 16), ("avx512", 1), ("avx2", 8), ("generic", 4)])
def test_math_templates(isa, lanes, tmp_path, monkeypatch):
    (tmp_path / "probe_f32.c").write_text(TEMPLATE)
    monkeypatch.setattr(builder, "MATH", tmp_path)
    builder.math_functions.cache_clear()
    try:
        p = Prelude(isa_or_skip(isa))
        case = operation("probe", ("f32",), "f32", None)
        text = loop_text(p, case, 0, lanes)
        library = compiled(p.source() + text, p.isa, tmp_path)
        assert "read by nobody" not in p.source()
    finally:
        builder.math_functions.cache_clear()
    x = np.array([0, 1, 2, 3, 5, 6, 7.0] * 3, np.float32)
    g = np.array([1, 2, 4, 1, 2, 4, 1] * 3, np.float32)
    out = np.zeros_like(x)
    caller(library)("case_0", x, out, x.size)
    assert np.array_equal(out, g * x + np.sqrt(g))


def test_only_what_is_used_is_written():
    p = Prelude(AVX512)
    assert p.source().count("\n") == 4
    p.op("max", ("f32", "f32"), ("a", "b"), 16)
    assert p.source().count("INL ") == 2  # the macro and the function
    text = p.source()
    p.op("max", ("f32", "f32"), ("c", "d"), 16)
    assert p.source() == text


@pytest.mark.parametrize("lanes", [1, 4, 8, 16])
def test_neon_text_is_written(lanes):
    """Without a compiler for AArch64: the text has no builtin that GCC or Clang does not know.

    `make arm` runs it."""
    p = Prelude(NEON)
    for case in CASES:
        loop_text(p, case, 0, lanes)
    for d in ALL:
        memory_text(p, d, lanes)
    assert "__builtin_ia32" not in p.source() and "__builtin_aarch64" not in p.source()
    assert lanes == 1 or '__asm__("fmla %0.4s, %1.4s, %2.4s" : "+w"(r)' in p.source()


def test_isa():
    assert host_isa() is host_isa()
    narrow = ("avx2", "fma", "f16c", "bmi1", "bmi2", "popcnt", "abm")
    wide = frozenset((*narrow, "avx512f", "avx512dq", "avx512bw", "avx512vl", "avx512cd"))
    assert isa_of(wide) == AVX512 and not AVX512.bf16_dot
    assert isa_of(wide | {"avx512_bf16"}).bf16_dot
    assert isa_of(wide - {"avx512vl"}) == AVX2
    assert isa_of(wide - {"fma"}) == GENERIC
