"""Scripts that are in no package: their folders join the import path here."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / name) for name in ("examples", "benchmarks", "notebooks")]
