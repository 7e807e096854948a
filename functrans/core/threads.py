"""How many threads compiled programs use on a CPU, and whose they are."""

from __future__ import annotations

from typing import Final

from functrans._runtime import (
    get_num_threads,
    get_thread_layer,
    set_num_threads,
    set_thread_layer,
)
from functrans.core.errors import HERE, ArgumentError

__all__ = ["THREAD_LAYERS", "num_threads", "thread_layer", "threads"]

THREAD_LAYERS: Final = ("functrans", "openmp")


class _Setting:
    """What holds from now on, and until the end of a `with` block where it is one's."""

    def __init__(self, layer: str | None, count: int | None) -> None:
        self._before = get_thread_layer(), get_num_threads()
        if layer is not None:
            try:
                set_thread_layer(layer)
            except ImportError as error:
                raise ArgumentError(
                    "there are no threads of OpenMP here.", where=HERE, why=f"{error}.",
                    fix="install GCC's libgomp1, or ft.config.threads('functrans')") from None
        if count is not None:
            set_num_threads(count)

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        layer, count = self._before
        set_thread_layer(layer)
        set_num_threads(count)


def threads(layer: str | None = None, count: int | None = None) -> _Setting:
    """Set whose threads the programs of this process use on the CPU, and how many; both or one.

    `"functrans"` is a pool of our own, the default, which is faster for short loops; `"openmp"` are
    the threads of GCC's OpenMP (libgomp), which other libraries in the process share, and which
    sleep while they wait unless OMP_WAIT_POLICY says otherwise. Results are the same to the bit.
    It holds from now on; as a context manager until the end of the block. A child of `fork` begins
    with a pool of its own. Raises ArgumentError for another layer, where OpenMP is not installed,
    and for less than one thread.

    >>> import functrans as ft
    >>> with ft.config.threads("functrans", 1):
    ...     ft.config.thread_layer(), ft.config.num_threads()
    ('functrans', 1)
    """
    if layer is not None and layer not in THREAD_LAYERS:
        raise ArgumentError(f"threads is 'functrans' or 'openmp', not {layer!r}.", where=HERE,
                            fix="ft.config.threads('openmp')")
    if count is not None and (not isinstance(count, int) or count < 1):
        raise ArgumentError(f"the number of threads must be at least 1, got {count!r}.", where=HERE)
    return _Setting(layer, count)


def thread_layer() -> str:
    """Whose threads programs use: 'functrans' or 'openmp'.

    >>> with ft.config.threads("openmp"):
    ...     ft.config.thread_layer()
    'openmp'
    """
    return get_thread_layer()


def num_threads() -> int:
    """How many threads a program uses, the caller's own among them.

    >>> with ft.config.threads(count=1):
    ...     ft.config.num_threads()
    1
    """
    return get_num_threads()
