"""Twenty-three more research programs, six of them over lanes, not tuned for.

`python benchmarks/programs.py --folder benchmarks/more_programs [--gpu]` measures them; the first
tables are `benchmarks/results/more-programs-*-first.json`. What a file has is said in
benchmarks/programs/__init__.py.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
