"""Write the golden texts anew: python -m tests.lowering.golden [--to FOLDER] [names]."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.lowering.golden import FOLDER
from tests.lowering.golden.programs import PROGRAMS
from tests.lowering.golden.stages import text_of

parser = argparse.ArgumentParser(description="Write the golden texts anew.")
parser.add_argument("names", nargs="*", metavar="name", help=", ".join(PROGRAMS))
parser.add_argument("--to", type=Path, default=FOLDER, metavar="FOLDER", help="not in their place")
options = parser.parse_args()
for name in options.names or PROGRAMS:
    (options.to / f"{name}.txt").write_text(text_of(name, *PROGRAMS[name]))
