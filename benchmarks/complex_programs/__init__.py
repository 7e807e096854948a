"""Programs of complex numbers, a file each, one source for JAX and functrans.

`python benchmarks/complex_numbers.py` compares them. A file has what a file of benchmarks/programs/
has (`programs/__init__.py` says what).
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
