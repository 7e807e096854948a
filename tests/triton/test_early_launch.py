"""Kernels that are launched while the one before them runs wait for it before anything else."""

import re

import pytest

import functrans as ft
import functrans.numpy as jnp
from functrans.lowering.passes.pipeline import simplify
from functrans.lowering.triton.device import binaries
from functrans.lowering.triton.machine.compile import launched_early
from functrans.lowering.triton.machine.target import cuda_target
from functrans.lowering.triton.program import write_program


@pytest.mark.parametrize(("capability", "early"), [(80, 0), (90, 1)])
def test_compiled_kernels_wait_where_the_device_knows_how(capability, early):
    x = ft.ShapeDtypeStruct((300, 200), "float32")
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
