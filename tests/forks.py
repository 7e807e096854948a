"""Checks in a forked child that ends there: one that returned would run the tests after it, too."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable


def holds_in_child(check: Callable[[], bool], seconds: int = 60) -> bool:
    """Whether `check` is true in a child of this process, which has so many seconds for it.

    What it raises is printed, and false. `os._exit` comes first of all that ends the child: an
    exception that left it would be reported by a second pytest, on the first one's pipe.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking with threads is the point
        child = os.fork()
    if child == 0:
        held = False
        try:
            signal.alarm(seconds)
            held = bool(check())
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(0 if held else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
