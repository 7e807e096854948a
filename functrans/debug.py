"""Looking into running programs: `print`, `log`, `callback`, `breakpoint` and `visualize`."""

from __future__ import annotations

import builtins
import inspect
import logging
import string
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from functrans.callbacks import debug_callback as callback
from functrans.core.errors import (
    ArgumentError,
    publish,
)
from functrans.core.frontends import display_in_notebook
from functrans.core.keypath import keystr
from functrans.core.source import (
    is_internal_module,
)
from functrans.core.trace import ARRAYS
from functrans.core.tree import tree_flatten_with_path, tree_leaves

if TYPE_CHECKING:
    from functrans.core.sharding import Sharding
    from functrans.typing import Array, PyTree

__all__ = ["breakpoint", "callback", "log", "print", "visualize", "visualize_array_sharding",
           "visualize_sharding"]

_LOGGER = logging.getLogger("functrans")


def print(fmt: str, *args: PyTree, ordered: bool = False, skip_format_check: bool = False,
          **kwargs: PyTree) -> None:
    """Print values when the program runs, formatted as by `str.format`.

    Raises ArgumentError when the format does not fit the arguments, unless that is not to be
    looked at before the program runs.

    >>> import functrans as ft
    >>> _ = ft.jit(lambda x: (ft.debug.print("x = {}", x), x)[1])(1.5)
    x = 1.5
    """
    if not skip_format_check:
        _check_format("print", fmt, args, kwargs)

    def show(*values: Any, **named: Any) -> None:
        builtins.print(fmt.format(*values, **named))

    callback(show, *args, ordered=ordered, **kwargs)


def _check_format(name: str, fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        string.Formatter().vformat(fmt, ("",) * len(args), dict.fromkeys(kwargs, ""))
    except (IndexError, KeyError) as error:
        raise ArgumentError(f"debug.{name}: the format {fmt!r} does not fit {len(args)} arguments "
                            f"and keywords {sorted(kwargs)}: {error}.",
                            fix=f'debug.{name}("x = {{}}", x), not an f-string') from None
    except ValueError:
        pass  # a format specification that the empty placeholders do not take


def log(fmt: str, *args: PyTree, ordered: bool = False, skip_format_check: bool = False,
        **kwargs: PyTree) -> None:
    """Log values when the program runs, as information of the logger "functrans".

    Raises ArgumentError when the format does not fit the arguments.

    >>> import functrans as ft
    >>> _ = ft.jit(lambda x: (ft.debug.log("x = {}", x), x)[1])(1.5)
    """
    if not skip_format_check:
        _check_format("log", fmt, args, kwargs)

    def write(*values: Any, **named: Any) -> None:
        _LOGGER.info(fmt.format(*values, **named))

    callback(write, *args, ordered=ordered, **kwargs)


def breakpoint(*, backend: str | None = None, filter_frames: bool = True,
               num_frames: int | None = None, ordered: bool = False, **kwargs: PyTree) -> None:
    """Stop in Python's debugger when the program gets there, at the caller's line.

    The names there are those of the caller's local variables: arrays and containers of arrays have
    the values of then, as NumPy arrays, numbers and texts those that tracing saw; and what the
    keywords name. `values` is the dictionary of the arrays. The debugger is that of
    `sys.breakpointhook`; the other arguments are of JAX's own one, and change nothing.

    >>> import functrans as ft, sys, builtins
    >>> def show():
    ...     builtins.print("stopped where x is", sys._getframe(1).f_locals["x"])
    >>> hook, sys.breakpointhook = sys.breakpointhook, show
    >>> _ = ft.jit(lambda x: (ft.debug.breakpoint(x=x), x)[1])(1.5)
    stopped where x is 1.5
    >>> sys.breakpointhook = hook
    """
    frame = inspect.currentframe()
    while frame is not None and is_internal_module(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    found: dict[str, Any] = {}
    fixed: dict[str, Any] = {}
    names: dict[str, Any] = {}
    place = ("<functrans.debug.breakpoint>", 1)
    if frame is not None:
        names, place = frame.f_globals, (frame.f_code.co_filename, frame.f_lineno)
        for name, value in frame.f_locals.items():
            if not name.isidentifier():
                continue
            if _is_of_arrays(value):
                found[name] = value
            elif isinstance(value, (bool, int, float, complex, str, type(None))):
                fixed[name] = value
    del frame  # or it would keep itself alive

    def stop(**values: Any) -> None:
        # a frame of the user's file, whose line after the hook's is that of the call
        file, line = place
        code = compile("\n" * max(line - 2, 0) + "_stop()\n_stop", file, "exec")
        there = {**fixed, **values, "values": values, "_stop": sys.breakpointhook}
        exec(code, names, there)

    callback(stop, ordered=ordered, **{**found, **kwargs})


def _is_of_arrays(value: Any) -> bool:
    """Whether a value is an array or a tree of arrays and numbers."""
    try:
        leaves = tree_leaves(value)
    except (TypeError, ValueError):  # keys that cannot be sorted, say
        return False
    return any(isinstance(x, ARRAYS) for x in leaves) and all(
        isinstance(x, (*ARRAYS, bool, int, float, complex)) for x in leaves)


def visualize(x: PyTree, name: str = "") -> None:
    """Show an array when the program runs: a picture of one with two axes, a line of one with one.

    A notebook gets a picture, a terminal characters; of more axes the first matrix is shown.
    Numbers go from dark (the least) to light, NaN is marked. Of a tree each array is shown.

    >>> import functrans as ft
    >>> ft.debug.visualize(ft.numpy.arange(6.0).reshape(2, 3), "ramp")
    ramp: f32[2,3], 0 to 5, mean 2.5
     :=
    *%@
    """
    def show(tree: Any) -> None:
        # later: who looks at arrays
        from functrans.core.array_picture import picture_of  # noqa: PLC0415

        for path, leaf in tree_flatten_with_path(tree)[0]:
            picture = picture_of(leaf, name + keystr(path))
            if not display_in_notebook(picture):
                builtins.print(picture)

    callback(show, x)


def visualize_array_sharding(x: Array) -> None:
    """Print which devices have which part of an array of one or two axes.

    Raises ArgumentError for other arrays.

    >>> import functrans as ft
    >>> with ft.config.cpu_devices(2):
    ...     mesh = ft.make_mesh((2,), ("x",), devices=ft.devices("cpu"))
    >>> x = ft.device_put(ft.numpy.ones((4, 4)), ft.NamedSharding(mesh, ft.P("x")))
    >>> ft.debug.visualize_array_sharding(x)
    +-------+
    | cpu:0 |
    +-------+
    | cpu:1 |
    +-------+
    """
    visualize_sharding(x.shape, x.sharding)


def visualize_sharding(shape: Sequence[int], sharding: Sharding) -> None:
    """Print which devices have which part of an array of that shape.

    >>> mesh = ft.make_mesh((1,), ("x",))
    >>> ft.debug.visualize_sharding((4,), ft.NamedSharding(mesh, ft.P("x")))
    +-------+
    | cpu:0 |
    +-------+
    """
    if not 1 <= len(shape) <= 2:
        raise ArgumentError(f"visualize_sharding: an array of shape {tuple(shape)}.",
                            why="arrays of one or two axes can be drawn.")
    cells: dict[tuple[int, int], list[str]] = {}
    rows = (1, *shape) if len(shape) == 1 else tuple(shape)
    for device, index in sharding.devices_indices_map(tuple(shape)).items():
        full = (slice(None), *index) if len(shape) == 1 else index
        at = (full[0].indices(rows[0])[0], full[1].indices(rows[1])[0])
        cells.setdefault(at, []).append(repr(device))
    tops = sorted({top for top, _ in cells})
    lefts = sorted({left for _, left in cells})
    texts = [[", ".join(cells[top, left]) for left in lefts] for top in tops]
    widths = [max(len(row[k]) for row in texts) for k in range(len(lefts))]
    line = "+" + "+".join("-" * (w + 2) for w in widths) + "+"
    builtins.print(line)
    for row in texts:
        builtins.print("| " + " | ".join(t.center(w) for t, w in
                                         zip(row, widths, strict=True)) + " |")
        builtins.print(line)


publish(globals(), __all__)
