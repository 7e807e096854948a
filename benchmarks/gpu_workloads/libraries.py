"""Complex arithmetic, Fourier transforms and linear algebra, which CUDA's libraries compute."""

from __future__ import annotations

from bounds import Rate

from gpu_workloads.entries import nbytes, workload


def complex_numbers(add, count):
    return add.torch_module.complex(add.normal(count), add.normal(count))


@workload("z conj(z) + exp(z), complex64 2^24", Rate(2700, "GB/s"))
def arithmetic(add):
    sets = add.sets(lambda: (complex_numbers(add, add.size(2**24, 2**10)),))
    add.moves(2 * nbytes(sets[0]))
    add.traced(lambda lib: lambda z: z * z.conj() + lib.numpy.exp(z), sets)
    add.torch(lambda z: z * z.conj() + z.exp(), sets)


@workload("fft of 2^24, complex64", 0.3e-3)
def transform(add):
    sets = add.sets(lambda: (complex_numbers(add, add.size(2**24, 2**10)),))
    add.traced(lambda lib: lib.numpy.fft.fft, sets)
    add.torch(add.torch_module.fft.fft, sets)


def definite(add, count, n):
    a = add.normal(count, n, n)
    return a @ a.mT + n * add.torch_module.eye(n, device=add.device)


@workload("Cholesky, 4096 x 64 x 64", 0.55e-3)
def cholesky(add):
    sets = add.sets(lambda: (definite(add, add.size(4096, 3), add.size(64, 8)),))
    add.traced(lambda lib: lib.numpy.linalg.cholesky, sets)
    add.torch(add.torch_module.linalg.cholesky, sets)


@workload("solve, 4096 x 64 x 64, 4 sides", 1.5e-3)
def solve(add):
    count, n = add.size(4096, 3), add.size(64, 8)
    sets = add.sets(lambda: (definite(add, count, n), add.normal(count, n, 4)))
    add.traced(lambda lib: lib.numpy.linalg.solve, sets)
    add.torch(add.torch_module.linalg.solve, sets)


@workload("eigh of 512^2", 6e-3)
def eigenvalues(add):
    n = add.size(512, 12)
    sets = [(definite(add, 1, n)[0],)]

    def norms(linalg):
        """The signs of vectors are a choice; their norms need them all the same."""
        def run(a):
            values, vectors = linalg.eigh(a)
            return values, (vectors * vectors).sum(0)

        return run

    add.traced(lambda lib: norms(lib.numpy.linalg), sets)
    add.torch(norms(add.torch_module.linalg), sets)
