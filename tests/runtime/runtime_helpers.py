"""What the tests of functrans._runtime share."""

import subprocess
import sys
import textwrap
from collections import namedtuple

import numpy as np

import functrans  # noqa: F401  (registers the array type and the operators' fallbacks)
from functrans import _runtime as rt

Array = type(rt.wrap(np.zeros(1)))
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
NATIVE = [np.bool_, *INTEGERS, np.float32, np.float64, np.complex64, np.complex128]


def arr(values, dtype=np.float32, weak_type=False):
    return rt.wrap(np.array(values, dtype), weak_type)


def forbidden(*args, **kwargs):
    raise AssertionError("the fallback ran")


def run_python(code):
    """Run code in a fresh interpreter; its output. The extension alone is loaded as `rt`."""
    head = f"""
        import importlib.util, sys
        import numpy as np
        spec = importlib.util.spec_from_file_location("functrans._runtime", {rt.__file__!r})
        rt = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(rt)
    """
    script = textwrap.dedent(head) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


Point = namedtuple("Point", "x y")


def counting(program, structure, weak):
    calls = []

    def miss(self, args, kwargs, key):
        calls.append((args, kwargs, key))
        if key is not None:
            self.insert(key, program, structure, weak)
        return "missed"

    return miss, calls
