"""What tensor cores and the copy engine do with float32, for Triton's interpreter: which computes
products in float32, and copies bits."""

from contextlib import contextmanager
from unittest import mock

import numpy as np
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle

from functrans.lowering.triton.emulator import emulation
from functrans.lowering.triton.kernels import host_math

CUT = np.uint32(0x1FFF)
"""The bits of a float32 number that TensorFloat-32 does not have."""


def nearest(data):
    """The nearest numbers of TensorFloat-32; what is not finite stays."""
    bits = np.ascontiguousarray(data, np.float32).view(np.uint32)
    return np.where(np.isfinite(data), (bits + np.uint32(0x1000)) & ~CUT, bits).view(np.float32)


@contextmanager
def tensor_cores(rounding=True):
    """Kernels are interpreted by tensor cores, which cut off bits; yields the counts of operands
    whose bits are cut off, and of those that have none to cut off. Without `rounding` kernels leave
    operands as they are."""
    plain, load = emulation._dot, InterpreterBuilder.create_descriptor_load
    made = InterpreterBuilder.create_make_tensor_descriptor
    counts = {"cut off": 0, "whole": 0}
    rounds = {"next": False}

    def cut(x):
        bits = np.ascontiguousarray(x.data).view(np.uint32)
        counts["cut off" if (bits & CUT)[np.isfinite(x.data)].any() else "whole"] += 1
        return TensorHandle((bits & ~CUT).view(np.float32), x.dtype)

    def dot(a, b, d, precision, *rest):
        if a.data.dtype == np.float32 and precision.name == "TF32":
            a, b = cut(a), cut(b)
        return plain(a, b, d, precision, *rest)

    def tf32(x):
        return host_math._like(nearest(x.handle.data), x) if rounding else x

    def next_copies_round():
        rounds["next"] = rounding

    def descriptor(self, *args):
        found = made(self, *args)
        found.rounds, rounds["next"] = rounds["next"], False
        return found

    def loaded(self, desc, *args):
        found = load(self, desc, *args)
        if desc.rounds:
            found.data = nearest(found.data)
        return found

    with mock.patch.object(emulation, "_dot", dot), \
            mock.patch.multiple(host_math, tf32=tf32, next_copies_round=next_copies_round), \
            mock.patch.multiple(InterpreterBuilder, create_descriptor_load=loaded,
                                create_make_tensor_descriptor=descriptor):
        yield counts
