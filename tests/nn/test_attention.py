"""Attention: against golden numbers (jax 0.10) and a plain loop over heads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as jnp

attend = ft.nn.dot_product_attention
GOLDEN = json.loads((Path(__file__).parent.parent / "data" / "nn.json").read_text())
IN = {k: np.array(v) for k, v in GOLDEN["attention_inputs"].items()}
QKV = [IN[k].astype(np.float32) for k in "qkv"]
BIAS, MASK = IN["bias"].astype(np.float32), IN["mask"].astype(bool)
CASES: dict[str, dict[str, Any]] = {
    "plain": {}, "causal": {"is_causal": True}, "scale": {"scale": 0.1}, "bias": {"bias": BIAS},
    "mask": {"mask": MASK}, "window": {"local_window_size": (1, 0)},
    "lengths": {"query_seq_lengths": np.array([2, 3]), "key_value_seq_lengths": np.array([4, 2])},
    "all": {"bias": BIAS, "mask": MASK, "is_causal": True}}


def loop(q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """One query of one head after the other."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    per = q.shape[2] // k.shape[2]
    for b, t, n in np.ndindex(*q.shape[:3]):
        keys = np.flatnonzero(seen[b, n, t])
        if keys.size:
            logits = k[b, keys, n // per] @ q[b, t, n] / np.sqrt(q.shape[3])
            weights = np.exp(logits - logits.max())
            out[b, t, n] = weights / weights.sum() @ v[b, keys, n // per]
    return out


@pytest.mark.parametrize("name", sorted(CASES))
def test_golden(name: str) -> None:
    got = np.asarray(attend(*QKV, **CASES[name]))
    expected = np.array(GOLDEN["attention"][name])
    sees = np.ones(expected.shape[:3], bool)  # rows that see nothing are 0 here
    if name in ("mask", "all"):
        seen = MASK & (np.tril(np.ones((3, 4), bool)) if name == "all" else True)
        sees = np.broadcast_to(seen, (2, 4, 3, 4)).any(-1).swapaxes(1, 2)
    if name == "lengths":
        sees = np.broadcast_to((np.arange(3) < np.array([[2], [3]]))[..., None], sees.shape)
    np.testing.assert_allclose(got[sees], expected[sees], rtol=1e-4, atol=1e-5)
    assert (got[~sees] == 0).all()


def test_residual_and_missing_batch() -> None:
    out, residual = attend(*QKV, return_residual=True)
    np.testing.assert_allclose(np.asarray(residual), GOLDEN["attention_residual"], rtol=1e-5,
                               atol=1e-5)
    alone, one = attend(*[x[0] for x in QKV], return_residual=True)
    np.testing.assert_allclose(np.asarray(alone), np.asarray(out)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(one), np.asarray(residual)[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.asarray(alone), GOLDEN["attention_unbatched"], rtol=1e-5,
                               atol=1e-5)


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
def test_against_a_loop(kv_heads: int) -> None:
    rng = np.random.default_rng(kv_heads)
    q = rng.normal(size=(2, 5, 6, 4))
    k, v = rng.normal(size=(2, 7, kv_heads, 4)), rng.normal(size=(2, 7, kv_heads, 3))
    seen = rng.random((2, 6, 5, 7)) > 0.5
    seen[0, 0, 0] = False
    got = np.asarray(attend(q, k, v, mask=seen))
    np.testing.assert_allclose(got, loop(q, k, v, seen), rtol=1e-10, atol=1e-12)


def test_gradients() -> None:
    args = [x.astype(np.float64) for x in QKV]
    seen = np.array(MASK)
    seen[0, 0, 1] = False
    f = lambda *args: attend(*args, mask=seen, bias=IN["bias"])
    tangents = [np.random.default_rng(i).normal(size=a.shape) for i, a in enumerate(args)]
    out, tangent = ft.jvp(f, tuple(args), tuple(tangents))
    high = np.asarray(f(*[a + 1e-6 * t for a, t in zip(args, tangents)]))
    low = np.asarray(f(*[a - 1e-6 * t for a, t in zip(args, tangents)]))
    np.testing.assert_allclose(np.asarray(tangent), (high - low) / 2e-6, rtol=1e-5, atol=1e-7)
    ct = np.random.default_rng(9).normal(size=out.shape)
    back = ft.vjp(f, *args)[1](ct)
    np.testing.assert_allclose(sum(np.vdot(b, t) for b, t in zip(back, tangents)),
                               np.vdot(ct, tangent), rtol=1e-9)
    assert all(np.isfinite(np.asarray(b)).all() for b in back)


def test_vmap_and_jit() -> None:
    got = ft.vmap(lambda q, k, v: attend(q, k, v, is_causal=True))(*QKV)
    expected = np.asarray(attend(*QKV, is_causal=True))
    np.testing.assert_allclose(np.asarray(got), expected, rtol=1e-5, atol=1e-6)
    jitted = ft.jit(lambda q, k, v: attend(q, k, v, is_causal=True))(*QKV)
    np.testing.assert_allclose(np.asarray(jitted), expected, rtol=1e-5, atol=1e-6)


def test_halves_are_computed_in_float32() -> None:
    q, k, v = (jnp.asarray(x).astype("bfloat16") for x in QKV)
    out = attend(q, k, v)
    assert out.dtype.name == "bfloat16"
    np.testing.assert_allclose(np.asarray(out, np.float32), np.asarray(attend(*QKV)), atol=0.05)


def test_errors() -> None:
    q, k, v = QKV
    for call, text in [(lambda: attend(q[0, 0], k, v), "batch, length"),
                       (lambda: attend(q, k[:, :2], v), "do not fit"),
                       (lambda: attend(q[:, :, :3], k, v), "3 query heads over 2"),
                       (lambda: attend(q, k.astype(np.float64), v), "one floating dtype"),
                       (lambda: attend(q, k, v, mask=np.ones((2, 4, 3, 4))), "True marks"),
                       (lambda: attend(q, k, v, implementation="cudnn"), "cudnn")]:
        with pytest.raises(ValueError, match=text):
            call()
