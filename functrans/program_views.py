"""What notebooks show of programs: `install` gives jaxprs their coloured view."""

from __future__ import annotations

from typing import Any

from functrans.core.jaxpr import ClosedJaxpr, Jaxpr

__all__ = ["install"]


def _view(program: Any) -> str:
    # later: only notebooks ask for it
    from functrans.core.jaxpr_html import jaxpr_html  # noqa: PLC0415

    return jaxpr_html(program.jaxpr if isinstance(program, ClosedJaxpr) else program)


def install() -> None:
    """Let notebooks show jaxprs with colours, the bodies of loops folded."""
    Jaxpr._repr_html_ = _view
    ClosedJaxpr._repr_html_ = _view
