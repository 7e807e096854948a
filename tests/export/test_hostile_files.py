"""Damaged and hostile files give an ExportError, quickly and with little memory."""

import random
import resource
import struct
import time
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ExportError
from functrans.core.evaluate import interpret
from functrans.export import Exported, deserialize, export
from functrans.export.container import SECTIONS, pack, unpack
from functrans.export.parameters import PRIMITIVES
from functrans.export.plain import DEPTH, from_bytes, to_bytes
from tests.export.plain_values import at_place, changed, changes_of, places, replaced

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)


def make_file(vjp_order=1):
    def network(p, x):
        def step(h, w):
            return ft.nn.relu(h @ w), h.sum()

        h, sums = ft.lax.scan(step, x, p["w"])
        chosen = p["w"][0, jnp.array([0, 2])].sum(0) + jnp.asarray(X[0])
        picked = jnp.sort(h, axis=0) + chosen
        return ft.lax.cond(sums[0] > 0, lambda h: 2 * h,
                           lambda h: jnp.pad(h[1:], ((1, 0), (0, 0))), picked)

    B = ft.dim("B", min=2, max=64, multiple_of=2)
    params = {"w": ft.ShapeDtypeStruct((2, 3, 3), "float32")}
    return export(ft.jit(network), vjp_order=vjp_order, targets=["cpu"])(
        params, ft.ShapeDtypeStruct((B, 3), "float32")).serialize()


FILE = make_file()
PROGRAM = from_bytes(unpack(FILE)[b"PROG"])


def outcome(data):
    """A program, or None where an error says what is wrong; anything else is raised."""
    try:
        return deserialize(data)
    except ExportError as error:
        assert str(error)
        return None


def with_program(program):
    return pack({**unpack(FILE), b"PROG": to_bytes(program), b"KERN": to_bytes([])})


def test_the_file_itself_is_read():
    assert isinstance(outcome(FILE), Exported)
    assert isinstance(outcome(with_program(PROGRAM)), Exported)


def test_every_flipped_bit_is_noticed():
    rng = random.Random(0)
    for _ in range(3000):
        data = bytearray(FILE)
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        assert outcome(bytes(data)) is None


def test_every_truncation_is_noticed():
    for length in [*range(0, 400), *range(400, len(FILE), 37)]:
        assert outcome(FILE[:length]) is None
    assert outcome(FILE + b"\0") is None


def test_spliced_sections():
    other = unpack(make_file(0))
    own = unpack(FILE)
    for name in SECTIONS:
        start = FILE.index(own[name][:64])
        spliced = FILE[:start] + other[name] + FILE[start + len(own[name]):]
        assert (spliced == FILE) or outcome(spliced) is None
    swapped = {b"PROG": own[b"DATA"], b"DATA": own[b"PROG"], b"KERN": own[b"KERN"]}
    assert outcome(pack(swapped)) is None


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_random_bytes(data):
    assert outcome(data) is None
    assert outcome(FILE[:8] + data) is None
    for name in SECTIONS:
        outcome(pack({**unpack(FILE), name: data}))


def test_section_bytes_with_right_checksums():
    rng = random.Random(1)
    sections = unpack(FILE)
    for _ in range(1500):
        program = bytearray(sections[b"PROG"])
        for _ in range(rng.randrange(1, 4)):
            program[rng.randrange(len(program))] = rng.randrange(256)
        outcome(pack({**sections, b"PROG": bytes(program)}))


@given(changes_of(PROGRAM, 2))
@settings(max_examples=500, deadline=None)
def test_other_values_in_a_well_formed_file(changes):
    loaded = outcome(with_program(changed(PROGRAM, changes)))
    if loaded is not None:
        assert loaded.as_text() and loaded.in_avals is not None


def test_deep_nesting():
    deep = b"\x07\x01" * 100_000 + b"\x00"
    assert outcome(pack({**unpack(FILE), b"PROG": deep})) is None
    with pytest.raises(ExportError, match=f"more than {DEPTH} deep"):
        from_bytes(deep)


def program_of(jaxprs, names=(), table=(), arrays=(), consts=()):
    """A file of these jaxprs; the last one, of one input and one result, is the program."""
    trees = [["tuple", ["tuple", "*"], ["dict", []]], "*"]
    head = ["f", 0, len(jaxprs) - 1, list(consts), trees, []]
    return with_program([head, list(names), list(table), list(arrays), jaxprs])


SCALAR = ["float32", False]


def calling(number, times):
    call = lambda k: ["jit", [["jaxpr", number], ["name", "f"]], [k], [SCALAR]]
    return ["f", [SCALAR], [call(k) for k in range(times)], [times]]


def test_calls_that_unfold_without_end():
    sine = ["f", [SCALAR], [["sin", [], [0], [SCALAR]]], [1]]
    assert float(outcome(program_of([sine, calling(0, 2)])).call(0.0)) == 0.0
    start = time.process_time()
    assert outcome(program_of([sine, *[calling(k, 9) for k in range(60)]])) is None
    assert outcome(program_of([sine, *[calling(k, 1) for k in range(70)]])) is None
    assert outcome(program_of([calling(0, 1)])) is None  # itself
    assert time.process_time() - start < 5


def test_huge_counts_allocate_nothing():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for count in (b"\xff\xff\xff\xff\x7f", b"\xff" * 9 + b"\x01"):
        for tag in (6, 7, 8):
            assert outcome(pack({**unpack(FILE), b"PROG": bytes([tag]) + count})) is None
    identity = ["f", [SCALAR], [], [0]]
    for sizes in ([2**40], [2**62, 4], [2**32, 2**32], [0, 2**62]):
        assert outcome(program_of([identity], arrays=[["float32", 0, *sizes]])) is None
    header = bytearray(FILE)
    header[12:16] = struct.pack("<I", 2**31)
    assert outcome(bytes(header)) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000


def test_sizes_that_grow_without_end():
    identity = ["f", [SCALAR], [], [0]]
    names = [["B", None, None, 1, False]]
    powers = [["name", 0], *[["mul", [k], [k]] for k in range(60)]]
    assert outcome(program_of([identity], names, powers)) is None
    assert outcome(program_of([identity], names, [["name", 0], ["pow", [0], 10**9]])) is None
    assert outcome(program_of([identity], names, [["name", 0], ["floordiv", [0], 0]])) is None
    for name in ('b"; system("x', "b b", "", "B" * 100, "é"):
        assert outcome(program_of([identity], [[name, None, None, 1, False]])) is None


def test_operands_must_fit_what_is_called():
    small, large = ["float32", False, 2], ["float32", False, 1000]
    body = ["f", [large], [["sin", [], [0], [large]]], [1]]
    main = ["f", [small], [["jit", [["jaxpr", 0], ["name", "f"]], [0], [large]]], [1]]
    assert outcome(program_of([body, main])) is None
    assert outcome(program_of([body, body])) is not None


def test_a_promise_of_indices_in_bounds_is_not_believed():
    fun = lambda x: x[jnp.array([0, 2])]
    text = export(fun)(X).as_text()
    assert "PROMISE" in str(ft.jit(fun).lower(X).jaxpr) and "PROMISE" not in text
    np.testing.assert_array_equal(export(fun)(X).call(X), fun(jnp.asarray(X)))


def test_other_versions_say_so():
    data = bytearray(FILE)
    data[8:12] = struct.pack("<I", 7)
    with pytest.raises(ExportError, match="format 7, and this functrans reads format 2"):
        deserialize(bytes(data))


def test_parameters_that_are_let_through_can_be_computed():
    rng = random.Random(3)
    loaded = 0
    for primitive in PRIMITIVES.values():
        for sample in primitive.samples():
            with ft.config.use_backend("reference"):
                file = export(partial(primitive.bind, **sample.params))(*sample.args).serialize()
            sections = unpack(file)
            program = from_bytes(sections[b"PROG"])
            equation = (4, 0, 2, 0)
            numbers = [at for at in places(program) if at[:4] == equation and len(at) > 5
                       and at[4] in (1, 3) and type(at_place(program, at)) is int]
            for _ in range(20 if numbers else 0):
                changed = program
                for _ in range(rng.choice([1, 1, 2])):
                    new = rng.choice([-2, -1, 0, 1, 2, 3, 5, 100])
                    changed = replaced(changed, rng.choice(numbers), new)
                exported = outcome(pack({**sections, b"PROG": to_bytes(changed)}))
                if exported is None:
                    continue
                loaded += 1
                inputs = [*map(np.asarray, (*exported.consts, *sample.args))]
                outs = interpret(exported.jaxpr, inputs)
                assert [o.shape for o in outs] == [a.shape for a in exported.out_avals]
    assert loaded > 100
