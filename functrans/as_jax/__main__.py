"""`python -m functrans.as_jax script.py [arguments]`, or `-m module [arguments]`."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from functrans.as_jax.installation import install

USAGE = """\
usage: python -m functrans.as_jax script.py [arguments]
       python -m functrans.as_jax -m module [arguments]

Runs a program with functrans in place of JAX."""
PLUGIN = "functrans.as_jax.pytest_plugin"


def main(arguments: list[str]) -> None:
    """Run what the arguments name as the main program."""
    if not arguments or arguments[0] in ("-h", "--help") or arguments == ["-m"]:
        print(USAGE)
        sys.exit(0 if arguments and arguments[0] != "-m" else 2)
    if arguments[0] != "-m" and not Path(arguments[0]).exists():
        sys.exit(f"python -m functrans.as_jax: there is no file {arguments[0]!r}.")
    install()
    if arguments[0] == "-m":
        module, *rest = arguments[1:]
        # workers of pytest-xdist are processes of their own, and are given options of this kind
        extra = ["-p", PLUGIN] if module == "pytest" else []
        sys.argv = [module, *extra, *rest]
        sys.path.insert(0, "")
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
