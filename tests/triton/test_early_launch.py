"""Kernels that are launched early wait for the one before them before they read its results."""

import re

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.schedule.target import cuda_target
from functrans.lowering.triton.machine.compile import launched_early
from functrans.lowering.triton.machine.device import binaries
from functrans.lowering.triton.program import write_program


@pytest.mark.parametrize(("capability", "early"), [(80, 0), (90, 1)])
def test_compiled_kernels_wait_where_the_device_knows_how(capability, early):
    x = ft.ShapeDtypeStruct((3000, 200), "float32")
    jaxpr = ft.make_jaxpr(lambda x: (jnp.sin(x).sum(0), x @ x.T))(x).jaxpr.hoist_consts()
    for binary in binaries(write_program(simplify(jaxpr)), cuda_target(capability)).values():
        entry = binary.ptx[binary.ptx.index(".entry"):]
        assert entry.count("griddepcontrol.wait;") == early
        if early:
            first = re.search(r"^\s+(ld|st|mov|red|atom|cp|bar)\b", entry, re.MULTILINE)
            assert entry.index("griddepcontrol.wait;") < first.start()


def test_the_wait_is_in_the_kernel_and_not_in_a_function_before_it():
    ptx = ".func f()\n{\n\tret;\n}\n.entry k(\n)\n{\n\t.reg .b32 %r<2>;\n\n\tmov.u32 %r1, 0;\n}\n"
    lines = launched_early(ptx).split("\n")
    assert lines[lines.index("\tgriddepcontrol.wait;") + 1:][:2] == [
        "\tgriddepcontrol.launch_dependents;", "\tmov.u32 %r1, 0;"]
    assert lines.index("\tgriddepcontrol.wait;") > lines.index(".entry k(")


def chain(x):
    return jnp.sin(x + jnp.sin(x).sum(0)).sum(1)


def written(fun, *args, **options):
    return write_program(simplify(ft.make_jaxpr(fun)(*args).jaxpr.hoist_consts()), **options)


def test_small_kernels_read_what_lasts_before_they_wait():
    program = written(chain, ft.ShapeDtypeStruct((256, 256), "float32"))
    assert len(program.steps) == 2
    for binary, others in zip(binaries(program).values(), (0, 1), strict=True):
        before, behind = binary.ptx.split("griddepcontrol.wait;")
        assert len(re.findall(r"ld\.global\.v4", before)) == 1
        assert not re.search(r"\b(st\.global|atom|red)\b", before)
        assert len(re.findall(r"ld\.global\.[vb]", behind)) == others


def test_what_may_be_written_to_is_read_behind_the_wait():
    x = ft.ShapeDtypeStruct((256, 256), "float32")
    assert "grid_dependency_wait" in written(chain, x).sources[0]
    assert "grid_dependency_wait" not in written(chain, x, donated={0}).sources[0]
    loop = written(lambda x: ft.lax.fori_loop(0, 3, lambda k, x: x / chain(x), x), x)
    assert all("grid_dependency_wait" not in text for text in loop.sources)


def test_the_wait_is_where_a_kernel_says_that_it_reads_results():
    ptx = ".entry k(\n)\n{\n\tld.global.b32 %r1;\n\t// earlier launches end\n\tret;\n}\n"
    lines = launched_early(ptx).split("\n")
    assert lines[lines.index("\tgriddepcontrol.wait;") - 1] == "\tld.global.b32 %r1;"
    assert lines.count("\tgriddepcontrol.wait;") == 1


def reached_before_waiting(ptx):
    """The instructions that write to memory on some way through a kernel that has not waited."""
    lines = [line.strip() for line in ptx[ptx.index(".entry"):].split("\n")]
    labels = {line[:-1]: k for k, line in enumerate(lines) if line.endswith(":")}
    found, seen, left = set(), set(), [lines.index("{") + 1]
    while left:
        k = left.pop()
        if k in seen or k >= len(lines):
            continue
        seen.add(k)
        line = lines[k]
        plain = re.sub(r"^@!?%\w+\s+", "", line)
        if plain.startswith("griddepcontrol.wait") or plain in ("ret;", "exit;", "}"):
            continue
        if re.match(r"(st\.global|atom|red)\b", plain):
            found.add(line)
        if jump := re.match(r"bra(?:\.uni)?\s+(\$?\w+);", plain):
            left.append(labels[jump[1]])
            if plain == line:
                continue
        left.append(k + 1)
    return found


def shared_launch(w, v, x):
    """A copy of a weight, which is read before the wait, beside sums of what is computed."""
    y = jnp.tanh(x @ w)
    return (y**2).sum(1), y @ v, w.T.copy(), (x * x).sum(1)


def clipped(w, v, x):
    def loss(weights, x):
        return jnp.square(jnp.maximum(x @ weights[0], 0) @ weights[1]).sum()

    return ft.per_sample.clipped_mean(loss, 1.0)((w, v), x)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fun", [shared_launch, clipped, chain])
@pytest.mark.parametrize("rows", [64, 4096])
def test_no_way_through_a_kernel_writes_before_it_has_waited(fun, rows):
    """Nor one through a kernel that shares its launch with others that wait later."""
    shapes = [(512, 256), (256, 64), (rows, 512)] if fun is not chain else [(rows, 256)]
    program = written(fun, *[ft.ShapeDtypeStruct(s, "float32") for s in shapes])
    for binary in binaries(program).values():
        assert not reached_before_waiting(binary.ptx)


def test_the_law_finds_a_way_without_a_wait():
    ptx = ("\n.entry k(\n)\n{\n\tsetp.lt.s32 %p1, %r1, 8;\n\t@%p1 bra $L__BB0_2;\n"
           "\tgriddepcontrol.wait;\n\tst.global.b32 [%rd1], %r1;\n\tret;\n$L__BB0_2:\n"
           "\t@%p2 st.global.b32 [%rd2], %r1;\n\tret;\n}\n")
    assert reached_before_waiting(ptx) == {"@%p2 st.global.b32 [%rd2], %r1;"}
