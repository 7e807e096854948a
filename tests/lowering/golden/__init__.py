"""Golden texts of whole programs: what the passes leave, the schedules, and the arenas.

`python -m tests.lowering.golden [names]` writes them anew; the difference is what a change does.
"""

from pathlib import Path

FOLDER = Path(__file__).parent / "texts"
