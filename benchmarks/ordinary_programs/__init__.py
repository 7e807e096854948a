"""Sixteen ordinary networks of research that the compiler was not tuned for.

`python benchmarks/programs.py --folder benchmarks/ordinary_programs [--gpu]` measures them. What is
slow in the first eight by `LOOKED_AT` was looked for in the compiler; the others were measured once
before and once after, and nobody looked at why. What a file has is said in
benchmarks/programs/__init__.py.
"""

from program_folder import Folder

LOOKED_AT = ("adversarial_generator", "graph_isomorphism", "masked_language", "mobile_network",
             "recommender", "selective_states", "waveform_model", "window_attention")  # fmt: skip

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
