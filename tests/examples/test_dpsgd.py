"""The private gradients of the digits example, against loops and closed forms."""

import math

import dpsgd
import numpy as np
import pytest
from networks import CNN, MLP
from training import make_batch_loss, make_loss, per_sample_gradients

import functrans as ft

BATCH = 5


@pytest.fixture(params=[MLP, CNN], ids=lambda network: network.name)
def problem(request):
    """Parameters, images, labels and gradients per sample of a network."""
    rng = np.random.default_rng(0)
    images = rng.random((BATCH, 8, 8)).astype(np.float32)
    labels = rng.integers(0, 10, BATCH).astype(np.int32)
    params = request.param.init(ft.random.key(0))
    gradients = per_sample_gradients(request.param)(params, images, labels)
    return request.param, params, images, labels, gradients


def flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in ft.tree.leaves(tree)])


def row(tree, index):
    return ft.tree.map(lambda leaf: leaf[index], tree)


def test_per_sample_gradients_are_a_loop_of_gradients(problem):
    network, params, images, labels, gradients = problem
    for index in range(BATCH):
        alone = ft.grad(make_loss(network))(params, images[index], labels[index])
        np.testing.assert_allclose(flat(row(gradients, index)), flat(alone), rtol=1e-4, atol=1e-5)


def test_they_average_to_the_batch_gradient(problem):
    network, params, images, labels, gradients = problem
    mean = ft.tree.map(lambda leaf: leaf.mean(axis=0), gradients)
    expected = ft.grad(make_batch_loss(network))(params, images, labels)
    np.testing.assert_allclose(flat(mean), flat(expected), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("clip", [0.1, 5.0, 1e6])
def test_clipping(problem, clip):
    *_, gradients = problem
    privacy = dpsgd.Privacy(clip=clip, noise=0.0, batch=BATCH)
    mask = np.array([1, 1, 0, 1, 1], np.float32)
    private, norms = dpsgd.clip_and_noise(gradients, mask, ft.random.key(0), privacy)
    rows = [flat(row(gradients, index)) for index in range(BATCH)]
    sizes = [np.linalg.norm(each) for each in rows]
    np.testing.assert_allclose(np.asarray(norms), sizes, rtol=1e-5)
    kept = [m * min(1, clip / size) * each for m, size, each in zip(mask, sizes, rows)]
    np.testing.assert_allclose(flat(private), sum(kept) / BATCH, rtol=1e-4, atol=1e-6)


def test_noise_has_its_deviation(problem):
    *_, gradients = problem
    nothing = ft.tree.map(lambda leaf: 0 * leaf, gradients)
    privacy = dpsgd.Privacy(clip=2.0, noise=3.0, batch=BATCH)
    noise, _ = dpsgd.clip_and_noise(nothing, np.ones(BATCH), ft.random.key(1), privacy)
    values = flat(noise)
    assert np.std(values) == pytest.approx(2.0 * 3.0 / BATCH, rel=5 / math.sqrt(values.size))


def test_poisson_samples_have_their_rate():
    privacy = dpsgd.Privacy(batch=64)
    rng = np.random.default_rng(0)
    sizes = []
    for _ in range(400):
        indices, mask = dpsgd.poisson_sample(rng, 1437, privacy)
        chosen = indices[mask > 0]
        assert len(set(chosen.tolist())) == chosen.size
        sizes.append(chosen.size)
    assert np.mean(sizes) == pytest.approx(64, abs=2)
    assert np.var(sizes) == pytest.approx(64 * (1 - 64 / 1437), rel=0.3)


def test_epsilon_of_an_almost_whole_sample_is_that_of_the_gaussian():
    """Without subsampling the Renyi divergence of order a is a / (2 noise^2)."""
    privacy = dpsgd.Privacy(noise=5.0, batch=999_999)
    found = dpsgd.epsilon(privacy, 1_000_000, 3, 1e-5)
    expected = min(
        3 * order / 50 + math.log1p(-1 / order) - math.log(1e-5 * order) / (order - 1)
        for order in range(2, 129)
    )
    assert found == pytest.approx(expected, rel=1e-3)


def test_epsilon_falls_with_noise_and_grows_with_steps():
    quiet, loud = dpsgd.Privacy(noise=0.8), dpsgd.Privacy(noise=1.2)
    assert dpsgd.epsilon(loud, 1437, 250, 1e-4) < dpsgd.epsilon(quiet, 1437, 250, 1e-4)
    assert dpsgd.epsilon(quiet, 1437, 100, 1e-4) < dpsgd.epsilon(quiet, 1437, 250, 1e-4)
