"""SciPy's settings of what happens on errors of special functions: here values are NaN."""

from __future__ import annotations

from types import TracebackType
from typing import Final

from functrans.core.errors import ArgumentError
from functrans.core.source import user_source

__all__ = ["SpecialFunctionError", "SpecialFunctionWarning", "errstate", "geterr", "seterr"]

_CATEGORIES: Final = ("singular", "underflow", "overflow", "slow", "loss", "no_result", "domain",
                      "arg", "other", "memory")


class SpecialFunctionWarning(Warning):
    """SciPy's warning of a special function, for programs that filter it: none is given here.

    >>> import warnings
    >>> import functrans as ft
    >>> warnings.simplefilter("ignore", ft.scipy.special.SpecialFunctionWarning)
    """


class SpecialFunctionError(Exception):
    """SciPy's error of a special function, for programs that catch it: none is raised here.

    >>> import functrans as ft
    >>> try:
    ...     value = ft.scipy.special.gammaln(-1.0)
    ... except ft.scipy.special.SpecialFunctionError:
    ...     value = 0.0
    """


def geterr() -> dict[str, str]:
    """What happens on each kind of error: "ignore", the value is NaN or infinite.

    >>> import functrans as ft
    >>> ft.scipy.special.geterr()["domain"]
    'ignore'
    """
    return dict.fromkeys(_CATEGORIES, "ignore")


def seterr(**kwargs: str) -> dict[str, str]:
    """Check settings of errors, of which "ignore" is what functrans does, and return the old ones.

    A program of arrays computes its values after the call that made it: its errors are NaN and
    infinity. Raises ArgumentError for "warn" and "raise", and for kinds that SciPy does not have;
    `functrans.debug_nans` finds the line that made a NaN.

    >>> import functrans as ft
    >>> old = ft.scipy.special.seterr(all="ignore")
    """
    for name, action in kwargs.items():
        if name != "all" and name not in _CATEGORIES:
            raise ArgumentError(f"scipy.special.seterr: {name!r} is no kind of error.",
                                where=user_source(), why="they are all, "
                                + ", ".join(_CATEGORIES) + ".", fix='all="ignore"')
        if action not in ("ignore", "warn", "raise"):
            raise ArgumentError(f"scipy.special.seterr: {name} is {action!r}.",
                                where=user_source(), why='it is "ignore" here, and "warn" or '
                                '"raise" too in SciPy.', fix=f'{name}="ignore"')
        if action != "ignore" and not (name == "memory" and action == "raise"):
            raise ArgumentError(
                f"scipy.special.seterr: {name}={action!r} is not what functrans does.",
                where=user_source(), why="values are computed in programs that neither warn nor "
                "raise: where one has no value it is NaN.", fix="with functrans.debug_nans(): ...")
    return geterr()


class errstate:
    """SciPy's context of settings of errors: checked as by `seterr`, of which it changes nothing.

    >>> import functrans as ft
    >>> with ft.scipy.special.errstate(all="ignore"):
    ...     value = ft.scipy.special.gammaln(-1.0)
    """

    def __init__(self, **kwargs: str) -> None:
        self.kwargs = kwargs

    def __enter__(self) -> None:
        seterr(**self.kwargs)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None,
                 traceback: TracebackType | None) -> None:
        pass
