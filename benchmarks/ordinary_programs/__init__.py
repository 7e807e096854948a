"""Twenty-eight ordinary networks of research that the compiler was not tuned for.

`python benchmarks/programs.py --folder benchmarks/ordinary_programs [--gpu]` measures them. What is
slow in `LOOKED_AT`, and later in `LOOKED_AT_LATER`, was looked for in the compiler. Nobody looked
at the times of the others; those in `HELD_BACK` are the newest, measured once. What a file has is
said in benchmarks/programs/__init__.py.
"""

from program_folder import Folder

LOOKED_AT = ("adversarial_generator", "graph_isomorphism", "masked_language", "mobile_network",
             "recommender", "selective_states", "waveform_model", "window_attention")  # fmt: skip
LOOKED_AT_LATER = ("deep_ensemble", "deep_q_learning", "dense_network", "object_detector",
                   "slot_attention", "spatial_transformer", "speech_conformer", "super_resolution",
                   "token_mixer", "vocoder", "voxel_network")  # fmt: skip
HELD_BACK = ("actor_critic", "equivariant_network", "low_rank_adaptation", "optical_flow",
             "style_transfer", "world_model")  # fmt: skip

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
