"""Twenty-four research programs that were written before anyone saw how they compile.

    OMP_NUM_THREADS=1 taskset -c 0 python benchmarks/programs.py --folder benchmarks/held_programs

measures them on one core. What is slow in `LOOKED_AT` was looked for in the compiler. Nobody looked
at how those in `HELD_BACK` compile: they were measured once before, and once after. What a file has
is said in benchmarks/programs/__init__.py.
"""

from program_folder import Folder

LOOKED_AT = ("beam_search", "chain_field", "ensemble_kalman", "gas_dynamics", "graph_diffusion",
             "hartree_fock", "iterative_lqr", "kmeans_seeding", "multigrid_poisson", "noise_by_em",
             "shortest_paths", "soft_time_warping", "sparse_variational", "star_cluster",
             "tomography", "wavelet_shrinkage")  # fmt: skip
HELD_BACK = ("beam_frames", "coordinate_descent", "matrix_completion", "neighbour_embedding",
             "potts_annealing", "rotary_decoder", "semi_markov", "soft_sorting")  # fmt: skip

TOLERANCES = {"cpu": 2e-3, "gpu": 1e-2}  # ||a - b|| / ||b||; on GPUs products are TF32
FOLDER = Folder(__name__, __path__, TOLERANCES)
names, load, make, tolerance = FOLDER.names, FOLDER.load, FOLDER.make, FOLDER.tolerance
