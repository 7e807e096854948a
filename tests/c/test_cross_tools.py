"""`make arm` and `make portable` say in one line what is to be installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("target, tools", [
    ("arm", ("aarch64-linux-gnu-gcc", "aarch64-linux-gnu-g++", "qemu-aarch64", "cmake")),
    ("portable", ("qemu-aarch64", "node", "chromium"))])
def test_what_is_missing_is_named(target, tools, tmp_path):
    for tool in tools:
        done = subprocess.run([shutil.which("make"), "-s", "-C", ROOT, f"{target}-tools",
                               "--no-print-directory", "PYTHON=python3"],
                              env={**os.environ, "PATH": str(tmp_path)}, capture_output=True,
                              text=True)
        assert done.returncode != 0
        (line,) = done.stdout.splitlines()
        assert line.startswith(f"make {target} needs {tool}.") and "apt-get install" in line
        stub = tmp_path / tool
        stub.write_text("#!/bin/sh\n")
        stub.chmod(0o755)
    done = subprocess.run([shutil.which("make"), "-s", "-C", ROOT, f"{target}-tools",
                           "PYTHON=python3"], env={**os.environ, "PATH": str(tmp_path)})
    assert done.returncode == 0
