"""Eight research programs of scalar code over lanes, written to measure first calls.

`python benchmarks/programs.py --folder benchmarks/lane_programs` measures them, and
`python benchmarks/first_calls.py` says where their first calls spend the time. What a file has is
said in benchmarks/programs/__init__.py. `SEEN` were looked at while the compiler was changed,
`UNSEEN` were measured before and after that alone.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
SEEN = ("barrier_paths", "boosted_trees", "three_bodies", "value_iteration")
UNSEEN = ("bearings_filter", "equilibrium_layer", "hamiltonian_chains", "unrolled_adam")
