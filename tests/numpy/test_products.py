"""Products and einsum against NumPy."""

import numpy as np
import pytest
from reference import check, compare, integers, normal

import functrans as ft
import functrans.numpy as jnp
from functrans import lax

MATMUL = [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((5, 2, 3), (5, 3, 4)),
          ((5, 2, 3), (3, 4)), ((2, 3), (5, 3, 4)), ((5, 1, 2, 3), (6, 3, 4)),
          ((1, 2, 3), (5, 3, 4)), ((5, 2, 3), (1, 3, 4)), ((1, 2, 3), (1, 3, 4)),
          ((3,), (5, 3, 4)), ((5, 2, 3), (3,)), ((7, 1, 2, 3), (1, 5, 3, 4)), ((0, 3), (3, 2)),
          ((2, 0), (0, 3)), ((2, 7, 1, 2, 3), (7, 5, 3, 4))]


@pytest.mark.parametrize("shapes", MATMUL)
def test_matmul(shapes):
    a, b = shapes
    compare("matmul", normal(*a), normal(*b, seed=1))
    compare("matmul", integers(*a), integers(*b))


@pytest.mark.parametrize("shapes", [((3,), (3,)), ((2, 3), (3,)), ((2, 3), (3, 4)), ((), (3,)),
                                    ((2, 3, 4), (5, 4, 6)), ((3,), (5, 3, 4)), ((), ())])
def test_dot_and_inner(shapes):
    a, b = normal(*shapes[0]), normal(*shapes[1], seed=1)
    compare("dot", a, b)
    if a.ndim and b.ndim:
        b = np.moveaxis(b, -2, -1) if b.ndim > 1 else b
    compare("inner", a, b)


def test_other_products():
    a, b = normal(2, 3, dtype=np.complex64), normal(2, 3, dtype=np.complex64, seed=2)
    compare("vdot", a, b)
    compare("outer", a, b)
    compare("kron", a, b)
    compare("kron", a[0], b)
    compare("kron", normal(2, 1, 3), normal(4, 2))
    compare("vecdot", a, b)
    compare("vecdot", normal(4, 2, 3), normal(4, 2, 3, seed=1), axis=1)
    compare("matvec", normal(4, 2, 3), normal(3))
    compare("vecmat", a[:, :2].T[:2], normal(4, 2, 5)[:2, :, :])
    compare("matmul", a, integers(3, 2))


@pytest.mark.parametrize("axes", [0, 1, 2, ((1, 2), (0, 1)), ((2, 0), (1, 2)), (1, 0)])
def test_tensordot(axes):
    b = {0: (2,), 1: (4, 5), 2: (3, 4, 2)}.get(axes, (3, 4, 2)) if isinstance(axes, int) else (
        3, 4, 2)
    compare("tensordot", normal(2, 3, 4), normal(*b), axes)


@pytest.mark.parametrize("sizes", [(3, 3), (2, 2), (2, 3), (3, 2)])
@pytest.mark.filterwarnings("ignore")
def test_cross(sizes):
    a, b = normal(4, sizes[0]), normal(4, sizes[1], seed=1)
    if 2 not in sizes:
        compare("cross", a, b)
        compare("cross", a.T, b.T, axis=0)
        compare("cross", a, b.T, axisb=0, axisc=0)
    else:
        pad = [np.pad(v, ((0, 0), (0, 3 - v.shape[1]))) for v in (a, b)]
        whole = np.cross(*pad)
        check(jnp.cross(a, b), whole[:, 2] if sizes == (2, 2) else whole)


EINSUM = [
    ("i,i->", (3,), (3,)), ("i,j->ij", (3,), (4,)), ("ij,jk->ik", (2, 3), (3, 4)),
    ("ij,jk", (2, 3), (3, 4)), ("ij,kj->ki", (2, 3), (4, 3)),
    ("bij,bjk->bik", (5, 2, 3), (5, 3, 4)),
    ("bij,bjk->ikb", (5, 2, 3), (5, 3, 4)), ("ij->ji", (2, 3)), ("ij->", (2, 3)), ("ij->j", (2, 3)),
    ("ii->i", (3, 3)), ("ii", (3, 3)), ("iij->ji", (3, 3, 2)), ("ij,ij->ij", (2, 3), (2, 3)),
    ("...ij,...jk->...ik", (5, 2, 3), (3, 4)), ("...i,...i", (4, 3), (4, 3)),
    ("i...->...", (3, 2)), ("i...,i...->...", (3, 1), (3, 2)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 2), (2, 5)), ("a,ab,abc->abc", (2,), (2, 3), (2, 3, 4)),
    ("ijk,ilm,njm,nlk,abc->", (2, 3, 2), (2, 2, 2), (3, 3, 2), (3, 2, 2), (1, 2, 1)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
    ("bhqk,bkhd->bqhd", (2, 2, 3, 5), (2, 5, 2, 4)),
    ("ij,kl->", (2, 3), (2, 2)), ("ij,jk->k", (2, 3), (3, 4)), ("i,i,i->i", (3,), (3,), (3,)),
    ("ij,i->ij", (2, 3), (2,)), ("ab,cd,ef->aebfcd", (2, 1), (2, 3), (1, 2)), ("i->i", (3,)),
    (",i->i", (), (3,)), ("i j , j k -> i k", (2, 3), (3, 4)), ("ij,jj->i", (2, 3), (3, 3)),
    ("ab,b->a", (2, 1), (3,)), ("ba,b->", (1, 2), (3,)), ("ij,j->i", (0, 3), (3,))]


@pytest.mark.parametrize("case", EINSUM, ids=lambda c: c[0])
@pytest.mark.parametrize("optimize", ["auto", "greedy", False])
def test_einsum(case, optimize):
    subscripts, *shapes = case
    xs = [normal(*s, seed=i) for i, s in enumerate(shapes)]
    with np.errstate(all="ignore"):
        expected = np.einsum(subscripts, *xs)
    check(jnp.einsum(subscripts, *xs, optimize=optimize), expected, tol=1e-4)


def test_einsum_forms():
    a, b = normal(2, 3), normal(3, 4)
    check(jnp.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    check(jnp.einsum(a, [0, 1], b, [1, 2]), a @ b)
    check(jnp.einsum(a, [..., 1], b, [1, 2], [..., 2]), a @ b)
    check(jnp.einsum("ij,jk", integers(2, 3), b), integers(2, 3) @ b)
    assert jnp.einsum("ij,jk->ik", jnp.ones((2, 3), "bfloat16"), jnp.ones((3, 4), "bfloat16"),
                      preferred_element_type="float32").dtype == np.float32
    path, report = jnp.einsum_path("ij,jk,kl->il", a, b, b.T, optimize="optimal")
    assert path[0] == "einsum_path" and len(path) == 3 and "operations" in report
    check(jnp.einsum("ij,jk,kl->il", a, b, b.T, optimize=path), a @ b @ b.T, tol=1e-4)
    check(jnp.einsum("ij,jk,kl->il", a, b, b.T, optimize=["einsum_path", (0, 1, 2)]), a @ b @ b.T,
          tol=1e-4)


def test_einsum_takes_the_cheapest_order():
    shapes = [(2, 50), (50, 50), (50, 50), (50, 1)]
    xs = [normal(*s) for s in shapes]
    path, _ = jnp.einsum_path("ab,bc,cd,de->ae", *xs, optimize="optimal")
    assert path == ["einsum_path", (2, 3), (1, 2), (0, 1)]


def test_einsum_of_many_operands():
    xs = [normal(2, 2, seed=i) * 0.5 for i in range(12)]
    letters = "abcdefghijklm"
    text = ",".join(letters[i] + letters[i + 1] for i in range(12)) + "->am"
    check(jnp.einsum(text, *xs), np.linalg.multi_dot(xs), tol=1e-4)


def test_refusals():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2, 3\) do not fit"):
        jnp.matmul(jnp.ones((2, 3)), jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="at least one dimension"):
        jnp.matmul(jnp.ones(()), jnp.ones(3))
    with pytest.raises(ValueError, match=r"the axis 'j'.*sizes 3 and 2"):
        jnp.einsum("ij,jk->ik", jnp.ones((2, 3)), jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="names 1 operands, and 2"):
        jnp.einsum("ij", jnp.ones((2, 3)), jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="must name axes"):
        jnp.einsum("ij->k", jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="does not fit an operand of 2"):
        jnp.einsum("ijk", jnp.ones((2, 3)))
    with pytest.raises(ValueError, match="size 2 or 3"):
        jnp.cross(jnp.ones(4), jnp.ones(4))
    with pytest.raises(ValueError, match="the sum runs over 3 elements"):
        jnp.tensordot(jnp.ones((2, 3)), jnp.ones((2, 3)), 1)


def test_einsum_contracts_by_a_function_that_is_given():
    seen = []

    def dot_general(x, y, dims, precision=None, preferred_element_type=None):
        seen.append(dims)
        return lax.dot_general(x, y, dims, precision, preferred_element_type)

    x, y = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4)
    for subscripts, operands in (("ij,jk->ki", (x, y)), ("ij,jk,ij->k", (x, y, x)),
                                 ("i,j->ij", (x[0], y[0])), ("ij->j", (x,))):
        seen.clear()
        found = ft.jit(lambda *xs, s=subscripts: jnp.einsum(s, *xs, _dot_general=dot_general))
        np.testing.assert_allclose(found(*operands), np.einsum(subscripts, *operands), 1e-6)
        assert len(seen) == len(operands) - 1
