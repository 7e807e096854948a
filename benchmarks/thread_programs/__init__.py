"""Ten programs that the choice of threads was not made with, a kind of step each.

`scaling.py --folder thread_programs` measures them: steps in a scan, long maps, small products,
sparse gathers, a mixture; rows and columns in turn, Fourier transforms, sorts, the nearest of many,
random draws with small systems. They are written as those of `programs/`, and have a fourth size,
"server", which takes 20 to 300 ms on one core.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
