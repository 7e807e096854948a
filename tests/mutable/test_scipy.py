"""SciPy and scikit-learn where they write into arrays: see scipy_programs.py."""

import json
import subprocess
import sys
from pathlib import Path


def test_scipy_and_scikit_learn_write_into_arrays():
    programs = Path(__file__).with_name("scipy_programs.py")
    done = subprocess.run([sys.executable, programs], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert len(found) == 10 and {name: why for name, why in found.items() if why} == {}
