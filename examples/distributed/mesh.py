"""What the recipes share: a mesh of all devices there are, and the whole of arrays in shards.

Started by mpiexec, the processes find each other; else virtual devices of the CPU stand for GPUs.
"""

import functrans as ft
from functrans.distributed import initialize, is_initialized
from functrans.sharding import NamedSharding, P


def one_mesh(shape=None, names=("x",)):
    """A mesh of all devices of all processes, by default along one axis."""
    if not is_initialized():
        initialize()
    if len(ft.devices()) == 1:
        ft.config.cpu_devices(4)
    return ft.make_mesh(shape or (ft.device_count(),), names)


def everywhere(tree):
    """A pytree whose arrays all processes have whole."""
    def gather(x):
        replicated = NamedSharding(x.sharding.mesh, P())
        return ft.jit(lambda v: v, out_shardings=replicated)(x)

    return ft.tree.map(gather, tree)
