"""Proportional hazards with a ridge penalty, by Newton's method (Cox 1972, Breslow 1974)."""

import numpy as np

FIELD = "medicine"
SIZES = {
    "tiny": dict(patients=24, features=3, steps=2),
    "small": dict(patients=1024, features=12, steps=6),
    "large": dict(patients=2**17, features=32, steps=10),
}


def make(lib, patients, features, steps):
    jnp = lib.numpy

    def loss(weights, x, died):
        """Patients are in the order of their times: at risk is who comes later."""
        score = x @ weights
        high = jnp.max(score)
        at_risk = jnp.cumsum(jnp.exp(score - high)[::-1])[::-1]
        partial = jnp.sum(died * (score - high - jnp.log(at_risk)))
        return -partial / patients + 0.01 * weights @ weights

    def fit(x, died, times):
        order = jnp.argsort(times)
        x, died = x[order], died[order]
        x = (x - jnp.mean(x, axis=0)) / jnp.std(x, axis=0)

        def step(weights, _):
            value, slope = lib.value_and_grad(loss)(weights, x, died)
            bend = lib.hessian(loss)(weights, x, died)
            move = jnp.linalg.solve(bend, slope)
            return weights - move, (value, jnp.linalg.norm(slope))

        start = jnp.zeros(features, jnp.float32)
        weights, (values, slopes) = lib.lax.scan(step, start, None, length=steps)
        risk = jnp.exp(x @ weights)
        hazard = jnp.cumsum(died / jnp.cumsum(risk[::-1])[::-1])
        residuals = died - hazard * risk
        errors = jnp.sqrt(jnp.diag(jnp.linalg.inv(lib.hessian(loss)(weights, x, died))) / patients)
        return weights, errors, values, slopes, residuals

    rng = np.random.default_rng(0)
    x = rng.standard_normal((patients, features))
    times = rng.exponential(np.exp(-x @ rng.normal(0, 0.4, features)))
    died = rng.uniform(size=patients) < 0.7
    return fit, tuple(a.astype(np.float32) for a in (x, died, times))
