"""Programs of `to_c` for Linux, Windows, macOS and WebAssembly, by the Clang of the wheel ziglang.

Those for Linux run here and in qemu, those for WebAssembly in node; the others are built.
"""

import numpy as np
import pytest

from functrans.lowering.c.prelude import Prelude
from tests.c import test_math as math_laws
from tests.c import test_vectors as laws
from tests.export.c_programs import PROGRAMS
from tests.portable.exported import build, run
from tests.portable.machines import Executable, missing, zig, zig_machines

accuracy = math_laws.accuracy
pytestmark = pytest.mark.portable
MACHINES = zig_machines()
RUNNING = [machine for machine in MACHINES if machine.runner is not None]
# the first words of a program for a system: ELF, WebAssembly, Mach-O of 64 bits, Windows
MAGIC = {"linux": b"\x7fELF", "wasm32": b"\0asm", "macos": b"\xcf\xfa\xed\xfe", "windows": b"MZ"}


@pytest.fixture(autouse=True)
def tools():
    assert not missing(("qemu-aarch64", "node")), "apt-get install qemu-user nodejs"
    assert not missing((zig(),)), "pip install 'functrans[compiler]'"
    with np.errstate(all="ignore"):
        yield


@pytest.mark.parametrize("program", PROGRAMS, ids=str)
@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_programs(machine, program, tmp_path, record_property):
    if machine.runner is None:
        path = build(machine, program.fun, program.args, tmp_path).path
        magic = next(magic for system, magic in MAGIC.items() if system in machine.name)
        assert path.read_bytes().startswith(magic)
        record_property(f"programs built for {machine}", 1)
    else:
        program.check(run(machine, program.fun, program.args, tmp_path), program.expected())
        record_property(f"programs run on {machine}", 1)


@pytest.mark.parametrize("machine", RUNNING, ids=str)
def test_every_operation_on_vectors(machine, tmp_path, record_property):
    p, lanes = Prelude(machine.isa), 4
    texts = [laws.loop_text(p, case, k, lanes) for k, case in enumerate(laws.CASES)]
    functions = {f"case_{k}": "p" * len(case.dtypes) + "pi" for k, case in enumerate(laws.CASES)}
    with Executable.of(machine, p.source() + "".join(texts), functions, tmp_path) as there:
        laws.assert_operations(there.call)
    record_property(f"operations on vectors, {machine}", len(functions))


@pytest.mark.parametrize("machine", RUNNING, ids=str)
def test_bits_of_the_mathematics_are_those_of_gcc(machine, tmp_path, record_property):
    lanes = (("f32", 4), ("f64", 2))
    here = accuracy.compiled(math_laws.NAMES)
    functions = {f"run_{name}_{d}": "pppi" for name in math_laws.NAMES for d, _ in lanes}
    text = accuracy.text(math_laws.NAMES, lanes, machine.isa)
    with Executable.of(machine, text, functions, tmp_path) as there:
        for name in math_laws.NAMES:
            for dtype, _ in lanes:
                operands = math_laws.grid(name, dtype)
                found = accuracy.evaluate(there, name, dtype, *operands, call=Executable.call)
                np.testing.assert_array_equal(
                    found, accuracy.evaluate(here, name, dtype, *operands), f"{name} {dtype}")
    record_property(f"functions on {machine}", len(functions))
