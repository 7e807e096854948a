"""Looking into running programs: `debug.print` and `debug.callback`."""

from __future__ import annotations

import builtins
import string
from typing import TYPE_CHECKING, Any

from functrans.callbacks import debug_callback as callback
from functrans.core.errors import ArgumentError, publish

if TYPE_CHECKING:
    from functrans.typing import PyTree

__all__ = ["callback", "print"]


def print(fmt: str, *args: PyTree, ordered: bool = False, **kwargs: PyTree) -> None:
    """Print values when the program runs, formatted as by `str.format`.

    Raises ArgumentError when the format does not fit the arguments.

    >>> import functrans as ft
    >>> _ = ft.jit(lambda x: (ft.debug.print("x = {}", x), x)[1])(1.5)
    x = 1.5
    """
    try:
        string.Formatter().vformat(fmt, ("",) * len(args), dict.fromkeys(kwargs, ""))
    except (IndexError, KeyError) as error:
        raise ArgumentError(f"debug.print: the format {fmt!r} does not fit {len(args)} arguments "
                            f"and keywords {sorted(kwargs)}: {error}.",
                            fix='debug.print("x = {}", x), not an f-string') from None
    except ValueError:
        pass  # a format specification that the empty placeholders do not take

    def show(*values: Any, **named: Any) -> None:
        builtins.print(fmt.format(*values, **named))

    callback(show, *args, ordered=ordered, **kwargs)

publish(globals(), __all__)
