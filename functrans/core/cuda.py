"""What the CUDA runtime says when something fails, as errors of functrans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from functrans import _runtime
from functrans.core import config
from functrans.core.errors import (
    ArgumentError,
    BackendError,
    DeviceError,
    DeviceMemoryError,
    ForkedDeviceError,
    KernelFaultError,
    NoDriverError,
    OldDriverError,
)
from functrans.core.source import user_source

__all__ = ["PUT_ON_CPU", "gpu_of", "has_triton", "memory_size", "raise_cuda"]

PUT_ON_CPU: Final = 127
"""The runtime's number for the CPU as the place of an array that was put there."""
SHARDED: Final = 126
"""... and for arrays in shards, or on a virtual device of the CPU."""
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")
_SHOWN: Final = 8


def memory_size(count: float) -> str:
    """A number of bytes as people say it.

    >>> memory_size(3 * 2**20)
    '3.0 MiB'
    """
    unit = 0
    while count >= 1024 and unit < len(_UNITS) - 1:
        count /= 1024
        unit += 1
    return f"{count:.1f} {_UNITS[unit]}" if unit else f"{int(count)} bytes"


@cache
def has_triton() -> bool:
    """Whether kernels for GPUs can be compiled."""
    return find_spec("triton") is not None


def gpu_of(values: Iterable[Any]) -> int | None:
    """The number of the GPU that a program of these values runs on; None for the CPU.

    It is the one where some of them are; where none is, the CPU if one was put there by
    `device_put`; else where arrays go by default. Raises ArgumentError for values on several GPUs.
    """
    if not has_triton() or not _runtime.cuda_open():
        return None
    values = [x for x in values if isinstance(x, _runtime.ArrayBase)]
    places: dict[int, Any] = {x._place: x for x in values}
    gpus = sorted(places.keys() - {0, PUT_ON_CPU, SHARDED})
    if len(gpus) > 1:
        raise _several_gpus([(f"gpu:{p - 1}", str(places[p].aval)) for p in gpus])
    if gpus:
        return gpus[0] - 1
    if PUT_ON_CPU in places:
        return None
    device = config.current().device
    if device is None:
        return 0
    return None if device.startswith("cpu") else int(device.rpartition(":")[2])


def _several_gpus(found: Sequence[tuple[str, str]]) -> ArgumentError:
    where = " and ".join(f"on {gpu} (such as a {aval})" for gpu, aval in found)
    return ArgumentError(
        f"the arguments of a compiled program are {where}.", where=user_source(),
        why="a program runs on one GPU, and arrays that were put somewhere stay there.",
        fix=f'ft.device_put(x, "{found[0][0]}")')


def raise_cuda(cause: str, detail: Mapping[str, Any]) -> None:
    """Raise the error for a failure of the driver; the runtime calls this.

    `detail`: call, code, name, words, note, device, bytes, stats (a dict) and launches (a list).
    """
    raise _makers.get(cause, _other)(detail)


def _driver_words(detail: Mapping[str, Any]) -> str:
    """`cuInit: CUDA_ERROR_UNKNOWN (999), unknown error`, as far as it is known."""
    code = f" ({detail['code']})" if detail["code"] else ""
    parts = (f"{detail['name']}{code}" if detail["name"] else code.strip(), detail["words"],
             detail["note"])
    return f"{detail['call']}: " + ", ".join(p for p in parts if p)


def _missing(detail: Mapping[str, Any]) -> NoDriverError:
    return NoDriverError(
        "there is no CUDA driver that works here.", why=_driver_words(detail) + ".",
        fix='install the NVIDIA driver (nvidia-smi shows whether it works), or use device="cpu"')


def _no_device(detail: Mapping[str, Any]) -> NoDriverError:
    number = detail["note"]
    return NoDriverError(
        f"there is no GPU of number {number} here." if number else "there is no GPU here.",
        why="the CUDA driver works, and offers no such device; CUDA_VISIBLE_DEVICES can hide them.",
        fix='ft.devices("gpu")  # those that are there' if number else 'device="cpu"')


def _version(detail: Mapping[str, Any]) -> OldDriverError:
    return OldDriverError(
        f"the CUDA driver is too old: it offers CUDA {detail['note']}.",
        why="kernels are compiled for CUDA 12.0 or newer.",
        fix="install an NVIDIA driver of version 525 or newer")


def _forked(detail: Mapping[str, Any]) -> ForkedDeviceError:
    return ForkedDeviceError(
        "the GPU cannot be used in this process.",
        why="it is a fork of a process that had used the GPU, and CUDA does not survive a fork.",
        fix='multiprocessing.get_context("spawn"), or fork before the first use of the GPU')


def _memory(detail: Mapping[str, Any]) -> DeviceMemoryError:
    stats = detail["stats"]
    why = "" if stats is None else (
        f"arrays and programs use {memory_size(stats['bytes_in_use'])} of it, at most "
        f"{memory_size(stats['peak_bytes_in_use'])} so far; "
        f"{memory_size(stats['bytes_reserved'])} are reserved, the largest free block of them has "
        f"{memory_size(stats['largest_free_block_bytes'])}; the device has "
        f"{memory_size(stats['bytes_free_on_device'])} of {memory_size(stats['bytes_limit'])} "
        "free for all processes.")
    # a library does not say how much it lacks
    asked = f"{memory_size(detail['bytes'])} were asked for" if detail["bytes"] else \
        f"{detail['call']} has none"
    return DeviceMemoryError(
        f"out of memory on gpu:{max(detail['device'], 0)}: {asked}.", why=why,
        fix="use smaller arrays or a narrower dtype, vmap(fun, chunk_size=n) or "
            "functrans.lax.map for batches, functrans.checkpoint under grad, donate_argnums")


def _fault(detail: Mapping[str, Any]) -> KernelFaultError:
    launches = [detail["note"]] if detail["note"] and config.current().internal_frames else \
        list(detail["launches"] or ())[-_SHOWN:]
    # the driver reports it at the next call, which is not the one at fault
    suspects = f" It ran one of: {'; '.join(launches)}." if launches else ""
    return KernelFaultError(
        "a kernel failed on the GPU.",
        why=f"{detail['name']} ({detail['code']}), {detail['words']}: every array on the device is "
            f"lost to this process, and each further use of it fails in the same way.{suspects}",
        fix="start a new process; FUNCTRANS_DEBUG=1 waits for each kernel and names the one that "
            "fails. This is a defect of functrans, unless another library wrote to its memory")


def _image(detail: Mapping[str, Any]) -> BackendError:
    return BackendError(
        "the CUDA driver does not take a compiled kernel.", why=_driver_words(detail) + ".",
        fix="clear the compilation cache; a kernel compiled for another GPU, or by a newer CUDA "
            "than the driver's, does not load")


def _library(detail: Mapping[str, Any]) -> DeviceError:
    return DeviceError(
        "a CUDA library refused a call.", why=f"{detail['call']}: {detail['note']}.",
        fix="a version of the library that fits the driver: "
            'pip install -U "functrans[gpu-libraries]"')


def _other(detail: Mapping[str, Any]) -> DeviceError:
    return DeviceError("the CUDA driver refused a call.", why=_driver_words(detail) + ".")


_makers: Final = {"missing": _missing, "no_device": _no_device, "version": _version,
                  "forked": _forked, "memory": _memory, "fault": _fault, "image": _image,
                  "library": _library}

_runtime.set_operator_fallbacks({"cuda": raise_cuda})
_runtime.cuda_synchronous(config.current().internal_frames)
