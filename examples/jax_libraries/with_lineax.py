"""Linear solves by every solver, of matrices, operators with tags and functions; least squares,
derivatives through solves, and solves of batches."""

import functools

import jax
import jax.numpy as jnp
import lineax as lx

LIBRARIES = ["lineax"]
KEYS = jax.random.split(jax.random.key(3), 4)
N = 12
A = jax.random.normal(KEYS[0], (N, N)) + 6 * jnp.eye(N)
B = jax.random.normal(KEYS[1], (N,))
TALL = jax.random.normal(KEYS[2], (20, 5))
ABOVE = jax.random.normal(KEYS[3], (20,))


def tridiagonal(a):
    return lx.TridiagonalLinearOperator(jnp.diag(a), jnp.diag(a, -1), jnp.diag(a, 1))


def cases():
    """A solver and a function from a matrix to an operator, by name."""
    general = lx.MatrixLinearOperator
    definite = lambda a: general(a @ a.T + 20 * jnp.eye(N), lx.positive_semidefinite_tag)
    matrix_free = lambda a: lx.FunctionLinearOperator(
        lambda x: a @ (a.T @ x) + x, jax.ShapeDtypeStruct((N,), a.dtype),
        lx.positive_semidefinite_tag)
    iterative = {"rtol": 1e-4, "atol": 1e-6}
    return {"LU": (lx.LU(), general), "QR": (lx.QR(), general), "SVD": (lx.SVD(), general),
            "Cholesky": (lx.Cholesky(), definite),
            "Diagonal": (lx.Diagonal(), lambda a: lx.DiagonalLinearOperator(jnp.diag(a))),
            "Triangular": (lx.Triangular(),
                           lambda a: general(jnp.tril(a), lx.lower_triangular_tag)),
            "Tridiagonal": (lx.Tridiagonal(), tridiagonal),
            "CG": (lx.CG(**iterative), matrix_free),
            "GMRES": (lx.GMRES(**iterative), general),
            "BiCGStab": (lx.BiCGStab(**iterative), definite),
            "chosen": (lx.AutoLinearSolver(well_posed=True), definite)}


def solved(name, a, b):
    solver, operator = cases()[name]
    return lx.linear_solve(operator(a), b, solver).value


def energy(name):
    """The squared norm of the solution, with its gradients by the matrix and the vector."""
    return jax.jit(jax.value_and_grad(lambda a, b: jnp.sum(solved(name, a, b) ** 2), (0, 1)))


def least_squares(solver):
    def loss(a, b):
        return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(a), b, solver).value ** 3)
    return jax.jit(jax.value_and_grad(loss))


def batch():
    return A + 0.1 * jnp.arange(8.0)[:, None, None], B * jnp.arange(1.0, 9.0)[:, None]


def program():
    gradients = jax.value_and_grad(lambda a, b: jnp.sum(solved("LU", a, b) ** 2), (0, 1))
    return jax.jit(jax.vmap(gradients)), batch()


def results():
    found = {}
    for name in cases():
        found[name], (found[f"{name}: by the matrix"], found[f"{name}: by the vector"]) = \
            energy(name)(A, B)
        found[f"{name}: batch"] = jax.jit(jax.vmap(functools.partial(solved, name)))(*batch())
    solvers = {"QR": lx.QR(), "SVD": lx.SVD(), "Normal": lx.Normal(lx.Cholesky())}
    for name, solver in solvers.items():
        found[f"least squares by {name}"], found[f"least squares by {name}: gradient"] = \
            least_squares(solver)(TALL, ABOVE)
    found["tangent"] = jax.jvp(lambda a: solved("QR", a, B), (A,), (A.T,))[1]
    found["eager"] = solved("GMRES", A, B)
    return found


if __name__ == "__main__":
    for name, value in results().items():
        print(f"{name}: {jnp.linalg.norm(value):.4f}")
