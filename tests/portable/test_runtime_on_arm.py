"""The C++ runtime is built for ARM by the project's CMake file, and refers to nothing missing."""

import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest

from tests.portable.machines import ARM_MISSING, ARM_TOOLS, missing

pytestmark = pytest.mark.portable
ROOT = Path(__file__).parents[2]


def output(*command):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def test_the_runtime_is_built_for_arm(tmp_path, record_property):
    assert not missing(ARM_TOOLS), ARM_MISSING
    output("cmake", "-S", ROOT, "-B", tmp_path, "-DCMAKE_SYSTEM_NAME=Linux",
           "-DCMAKE_SYSTEM_PROCESSOR=aarch64", "-DCMAKE_C_COMPILER=aarch64-linux-gnu-gcc",
           "-DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++", "-DCMAKE_CXX_FLAGS=-Werror",
           f"-DPython_EXECUTABLE={sys.executable}",
           f"-DPython_INCLUDE_DIR={sysconfig.get_path('include')}",
           f"-DPython_NumPy_INCLUDE_DIR={np.get_include()}",
           f"-Dpybind11_DIR={output(sys.executable, '-m', 'pybind11', '--cmakedir').strip()}")
    output("cmake", "--build", tmp_path, "-j", "2")
    (library,) = tmp_path.glob("_runtime*.so")
    header = library.read_bytes()[:20]
    assert header[:4] == b"\x7fELF" and header[18:20] == b"\xb7\0"  # EM_AARCH64
    symbols = output("aarch64-linux-gnu-nm", "-DC", library).splitlines()
    undefined = [line.split(" U ")[1] for line in symbols if " U " in line]
    # Python's come from the interpreter, those with a version from the C and C++ libraries
    ours = [s for s in undefined if "@" not in s and not s.startswith(("Py", "_Py"))]
    assert not ours, ours
    record_property("sources of the runtime built for ARM", sum(
        len([*ROOT.glob(f"csrc/{pattern}")]) for pattern in ("*.c", "*.cpp", "cuda/*.cpp")))
