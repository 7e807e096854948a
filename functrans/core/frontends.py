"""Who looks at what a program shows: a terminal, a notebook, or somebody who reads a file later."""

from __future__ import annotations

import sys
from typing import Any

__all__ = ["display_in_notebook", "is_notebook", "notebook_display"]


def notebook_display() -> Any:
    """IPython's module `display` where a kernel of a notebook runs this process, else None."""
    ipython = sys.modules.get("IPython")  # nobody's notebook without it
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    return sys.modules.get("IPython.display")


def is_notebook() -> bool:
    """Whether a notebook shows what this process displays."""
    return notebook_display() is not None


def display_in_notebook(shown: Any) -> bool:
    """Show an object below the cell that runs; False where there is no notebook."""
    display = notebook_display()
    if display is None:
        return False
    display.display(shown)
    return True
