"""Damaged and hostile sections of kernels give an ExportError, whether kernels are trusted or not;
what is let through asks for no memory that the program does not have.
"""

import random
import resource
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
import functrans.numpy as jnp
from functrans.core.errors import ExportError
from functrans.export import deserialize, export
from functrans.export.container import pack, unpack
from functrans.export.plain import from_bytes, to_bytes
from functrans.lowering.triton.portable import PortableTritonProgram
from functrans.lowering.triton.steps.spec import (
    CopyStep,
    DoubleBufferedSteps,
    Launch,
    Pointer,
    RepeatedSteps,
)
from tests.export.plain_values import changed, changes_of

X = np.linspace(-1, 1, 128, dtype=np.float32).reshape(8, 16)
CPU, GPU = 0, 1


def make_file():
    table = jnp.asarray(X)

    def fun(x):
        rows = jnp.take(table, jnp.arange(8), axis=0) @ x.T
        return jnp.sort(rows, axis=1), x.at[2].set(7.0), jnp.concatenate([x, x])

    return export(ft.jit(fun), targets=["cpu", "cuda:90"])(X).serialize()


FILE = make_file()
SECTIONS = unpack(FILE)
KERNELS = from_bytes(SECTIONS[b"KERN"])


def with_kernels(section):
    return pack({**SECTIONS, b"KERN": section if isinstance(section, bytes) else to_bytes(section)})


def outcome(data):
    """What is loaded, or None where an error says what is wrong; anything else is raised."""
    found = []
    for trust in (False, True):
        try:
            found.append(deserialize(data, trust_kernels=trust))
        except ExportError as error:
            assert str(error)
            found.append(None)
    assert (found[0] is None) == (found[1] is None)
    return found[1]


def of_gpu(steps, arena=1024, arrival_counters=4, kernels=None):
    """The file with other steps of its program for GPUs."""
    target, ((sizes, chosen, own, _, arrays),) = KERNELS[GPU]
    program = [sizes, chosen, own if kernels is None else kernels, [steps, arena, arrival_counters],
               arrays]
    return with_kernels([KERNELS[CPU], [target, [program]]])


def test_the_file_itself_is_read():
    loaded = outcome(FILE)
    assert loaded.targets == ("cpu", "cuda:90")
    assert outcome(with_kernels(KERNELS)).targets == loaded.targets
    assert outcome(with_kernels([])).kernels == {}


def test_every_flipped_bit_and_truncation_is_noticed():
    rng = random.Random(0)
    start = FILE.index(SECTIONS[b"KERN"][:64])
    for _ in range(200):
        data = bytearray(FILE)
        data[rng.randrange(start, len(data))] ^= 1 << rng.randrange(8)
        assert outcome(bytes(data)) is None
        assert outcome(FILE[:rng.randrange(start, len(FILE))]) is None


def test_section_bytes_with_right_checksums():
    rng = random.Random(1)
    codes = [k[3] for target in KERNELS for program in target[1] for k in program[2]]
    small = to_bytes([[t, [[*p[:2], [[*k[:3], b"", k[4]] for k in p[2]], *p[3:]] for p in ps]]
                      for t, ps in KERNELS])
    assert all(codes) and outcome(with_kernels(small)) is not None
    for _ in range(1500):
        section = bytearray(small)
        for _ in range(rng.randrange(1, 4)):
            section[rng.randrange(len(section))] = rng.randrange(256)
        cut = rng.choice([len(section), len(section), rng.randrange(len(section))])
        outcome(with_kernels(bytes(section[:cut])))


def check_places(steps, program):
    """Every place that the runtime reads or writes itself is memory of the program."""
    sizes = {"input": [a.nbytes for a in program.inputs],
             "output": [a.nbytes for a in program.outputs],
             "constant": [c.nbytes for c in program.constants], "arena": [program.arena_bytes],
             "tickets": [4 * program.arrival_counters]}

    def inside(at, nbytes, rounds):
        for k in (0, rounds - 1):
            begin = at.offset + k * at.stride
            assert 0 <= begin <= begin + nbytes <= sizes[at.kind][at.index]

    def visit(steps, rounds):
        for step in steps:
            if isinstance(step, CopyStep):
                inside(step.target, step.nbytes, rounds)
                inside(step.source, step.nbytes, rounds)
            elif isinstance(step, Launch):
                for at in step.arguments:
                    if isinstance(at, Pointer):
                        inside(at, 0, rounds)
            elif isinstance(step, RepeatedSteps):
                visit(step.steps, max(step.count, 1))
            elif isinstance(step, DoubleBufferedSteps):
                for side in step.sides:
                    inside(side.flag, 1, 1)
                    visit((*side.holds, *side.body, *side.ends), 1)

    visit(steps, 1)


@given(changes_of(KERNELS))
@settings(max_examples=300, deadline=None)
def test_other_values_in_a_well_formed_section(changes):
    loaded = outcome(with_kernels(changed(KERNELS, changes)))
    for programs in [] if loaded is None else loaded.programs.values():
        for program in programs:
            if isinstance(program.portable, PortableTritonProgram):
                check_places(program.portable.program.steps, program.portable.program)


LAUNCH = KERNELS[GPU][1][0][3][0][0]
ARENA = ["arena", 0, 0, 0]
COPY = ["copy", ARENA, ["input", 0, 0, 0], 64]
SIDE = [ARENA, [LAUNCH], [COPY], []]
LOOPS = [["rounds", 4, [["copy", ["arena", 0, 0, 64], ["input", 0, 0, 64], 64]]],
         ["turns", False, [SIDE, SIDE]], COPY, LAUNCH]


@given(changes_of(LOOPS, 2))
@settings(max_examples=400, deadline=None)
def test_other_values_in_loops(changes):
    loaded = outcome(of_gpu(changed(LOOPS, changes)))
    if loaded is not None:
        program = loaded.programs["cuda:90"][0].portable.program
        check_places(program.steps, program)


@pytest.mark.parametrize("steps", [
    [["copy", ARENA, ["input", 0, 0, 0], 513]],
    [["copy", ["arena", 0, 1000, 0], ["input", 0, 0, 0], 64]],
    [["copy", ["arena", 1, 0, 0], ["input", 0, 0, 0], 64]],
    [["copy", ["output", 9, 0, 0], ["input", 0, 0, 0], 64]],
    [["copy", ARENA, ["tickets", 0, 0, 0], 17]],
    [["copy", ARENA, ["memory", 0, 0, 0], 1]],
    [["copy", ARENA, ARENA, -1]],
    [["rounds", 2, [["copy", ["arena", 0, 0, 1000], ARENA, 64]]]],
    [["rounds", 2**61, [["copy", ["arena", 0, 0, 1], ARENA, 0]]]],
    [["rounds", 3, [["copy", ["arena", 0, 8, -8], ARENA, 8]]]],
    [["rounds", 2, [["rounds", 2, [COPY]]]]],
    [["turns", True, [SIDE]]],
    [["turns", True, [[["arena", 0, 1024, 0], [], [], []], SIDE]]],
    [["launch", 99, *LAUNCH[2:]]],
    [["launch", LAUNCH[1], "other", *LAUNCH[3:]]],
    [[*LAUNCH[:3], [2**31, 1, 1], *LAUNCH[4:]]],
    [[*LAUNCH[:4], LAUNCH[4][:-1], *LAUNCH[5:]]],
    [["host", "os.system"]],
    [["library", "fft", [1.5], [], []]],
    [COPY, [[[]]]],
    [[]],
])
def test_steps_that_reach_for_what_is_not_there(steps):
    assert outcome(of_gpu(LOOPS)) is not None
    assert outcome(of_gpu(steps)) is None


@pytest.mark.parametrize("at, value", [
    (0, "x"), (1, 0), (1, 33), (3, 2**30), (3, -1), (4, 2**60), (5, -1)])
def test_kernels_that_ask_for_what_no_gpu_has(at, value):
    own = KERNELS[GPU][1][0][2]
    kernels = [[*own[0][:4], [*own[0][4][:at], value, *own[0][4][at + 1:]]], *own[1:]]
    assert outcome(of_gpu([], kernels=own)) is not None
    assert outcome(of_gpu([], kernels=kernels)) is None


def test_programs_of_other_types_are_refused():
    other = unpack(export(lambda x: x[:, :3] * 2)(X).serialize())
    assert outcome(pack({**other, b"KERN": SECTIONS[b"KERN"]})) is None


@given(st.binary(max_size=200))
@settings(max_examples=200, deadline=None)
def test_random_bytes(data):
    outcome(with_kernels(data))


def test_large_numbers_allocate_nothing_and_take_no_time():
    before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    for steps in ([["rounds", 2**40, [COPY]]], [COPY] * 20_000,
                  [["launch", *LAUNCH[1:3], [2**31 - 1, 65535, 65535], *LAUNCH[4:]]]):
        outcome(of_gpu(steps, arena=2**45, arrival_counters=2**40))
    assert outcome(of_gpu([], arena=2**60)) is None
    program = KERNELS[CPU][1][0]
    many = [["cpu", [[program[0], program[1], [["f", "", "", b"", None]], *program[3:]]] * 3000]]
    outcome(with_kernels(many))
    assert time.process_time() - start < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000
