"""The demo's private gradients against loops and closed forms, and what it says that they cost."""

import math

import digits
import digits_figure
import dpsgd
import numpy as np
import pytest
from networks import CNN, MLP
from training import make_loss, train, train_privately

import functrans as ft

BATCH = 5


@pytest.fixture(params=[MLP, CNN], ids=lambda network: network.name)
def problem(request):
    """The loss of a network, its parameters, images and labels."""
    rng = np.random.default_rng(0)
    images = rng.random((BATCH, 8, 8)).astype(np.float32)
    labels = rng.integers(0, 10, BATCH).astype(np.int32)
    return make_loss(request.param), request.param.init(ft.random.key(0)), images, labels


def flat(tree) -> np.ndarray:
    return np.concatenate([np.ravel(np.asarray(leaf)) for leaf in ft.tree.leaves(tree)])


@pytest.mark.parametrize("clip", [0.1, 5.0, 1e6])
def test_a_private_gradient_is_a_mean_of_clipped_gradients(problem, clip):
    loss, params, images, labels = problem
    privacy = dpsgd.Privacy(clip=clip, noise=0.0, batch=BATCH)
    mask = np.array([1, 1, 0, 1, 1], np.float32)
    gradient = ft.jit(dpsgd.private_gradient(loss, privacy))
    private, norms = gradient(params, images, labels, weights=mask)
    rows = [flat(ft.grad(loss)(params, *sample)) for sample in zip(images, labels, strict=True)]
    sizes = [np.linalg.norm(each) for each in rows]
    np.testing.assert_allclose(np.asarray(norms), sizes, rtol=1e-5)
    kept = [m * min(1, clip / size) * each for m, size, each in zip(mask, sizes, rows)]
    np.testing.assert_allclose(flat(private), sum(kept) / BATCH, rtol=1e-4, atol=1e-6)


def test_its_noise_has_its_deviation(problem):
    loss, params, images, labels = problem
    privacy = dpsgd.Privacy(clip=2.0, noise=3.0, batch=BATCH)
    gradient = ft.jit(dpsgd.private_gradient(loss, privacy))
    nobody = np.zeros(BATCH, np.float32)
    noise, _ = gradient(params, images, labels, key=ft.random.key(1), weights=nobody)
    values = flat(noise)
    assert np.std(values) == pytest.approx(2.0 * 3.0 / BATCH, rel=5 / math.sqrt(values.size))


def test_the_table_of_costs():
    """No time is judged; the memory is what the compiler plans, so it is the same everywhere."""
    data = digits.load()
    params = MLP.init(ft.random.key(0))
    batch, private, materialised, eager = digits.gradient_costs(MLP, params, data, repeats=1)
    assert private.peak < 1.5 * batch.peak
    each = 4 * sum(leaf.size for leaf in ft.tree.leaves(params))
    assert materialised.peak > 0.9 * digits.PRIVACY.capacity * each
    assert eager.peak is None
    assert all(cost.seconds > 0 for cost in (batch, private, materialised, eager))


def test_the_table_that_the_readme_tells_of():
    batch, clipped, materialised, _ = digits.large_costs(repeats=1)
    assert digits.LARGE_MLP.name == "MLP 784-256-128-10" and digits.LARGE_BATCH == 256
    assert clipped.peak < 1.2 * batch.peak
    assert materialised.peak > 4 * 256 * (784 * 256)  # the gradients of the first layer


def test_training_and_its_figure(tmp_path):
    data = digits.load()
    runs = [train(CNN, data, 0, 5, 1e-2)]
    runs += [train_privately(network, data, 0, 5, 1e-2, digits.PRIVACY) for network in (MLP, CNN)]
    assert all(0 < norms.size <= digits.PRIVACY.capacity for norms in runs[1].norms)
    path = tmp_path / "digits.png"
    digits_figure.draw(runs, data, digits.PRIVACY, path)
    assert path.stat().st_size > 10_000


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
