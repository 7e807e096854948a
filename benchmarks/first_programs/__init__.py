"""Twenty research programs of common kinds, written to measure first calls.

`python benchmarks/programs.py --folder benchmarks/first_programs` measures them, and
`python benchmarks/first_calls.py --folder first_programs` says where their first calls spend the
time. What a file has is said in benchmarks/programs/__init__.py. `SEEN` were
tuned on while the compiler was changed, of `LOOKED_AT` the text was read, `UNSEEN` were measured
before and after that alone.
"""

from program_folder import Folder

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
SEEN = ("classifier_training", "attention_training", "predator_prey", "posterior_walk",
        "smoothing_spline", "cart_pole")  # fmt: skip
LOOKED_AT = ("gated_recurrence", "shallow_water", "track_filter", "molecule_network",
             "orbit_anomalies", "augmented_images", "survival_model", "spiking_network",
             "traffic_flow", "topic_model")  # fmt: skip
UNSEEN = ("epidemic_fit", "phylogeny", "stereo_matching", "robot_arm")
