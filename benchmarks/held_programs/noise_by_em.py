"""EM for the matrices of a linear state space model: filter, RTS smoother, updates (Shumway)."""

import numpy as np

FIELD = "time series"
SIZES = {
    "tiny": dict(series=2, length=10, states=2, seen=3, iterations=2),
    "small": dict(series=8, length=100, states=4, seen=6, iterations=4),
    "large": dict(series=1024, length=500, states=8, seen=16, iterations=10),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 5e-2}


def make(lib, series, length, states, seen, iterations):
    jnp, lax = lib.numpy, lib.lax
    mv_logpdf = lib.scipy.stats.multivariate_normal.logpdf

    def filtered(params, ys):
        a, c, q, r = params

        def advance(carry, y):
            m, p = carry
            mp, pp = a @ m, a @ p @ a.T + q
            s = c @ pp @ c.T + r
            gain = jnp.linalg.solve(s, c @ pp).T
            m, p = mp + gain @ (y - c @ mp), pp - gain @ s @ gain.T
            return (m, p), (m, p, mp, pp, mv_logpdf(y, c @ mp, s))

        return lax.scan(advance, (jnp.zeros(states), jnp.eye(states)), ys)[1]

    def smoothed(params, ms, ps, mps, pps):
        a = params[0]

        def back(carry, at):
            m_next, p_next = carry
            m, p, mp, pp = at
            gain = jnp.linalg.solve(pp, a @ p).T
            m_new = m + gain @ (m_next - mp)
            p_new = p + gain @ (p_next - pp) @ gain.T
            return (m_new, p_new), (m_new, p_new, p_next @ gain.T)

        at = (ms[:-1], ps[:-1], mps[1:], pps[1:])
        return lax.scan(back, (ms[-1], ps[-1]), at, reverse=True)[1]

    def expectations(params, ys):
        ms, ps, mps, pps, logs = filtered(params, ys)
        sm, sp, cross = smoothed(params, ms, ps, mps, pps)
        sm, sp = jnp.concatenate([sm, ms[-1:]]), jnp.concatenate([sp, ps[-1:]])
        second = sp + sm[:, :, None] * sm[:, None]
        lagged = cross + sm[1:, :, None] * sm[:-1, None]
        return (jnp.sum(second[:-1], 0), jnp.sum(second[1:], 0), jnp.sum(second, 0),
                jnp.sum(lagged, 0), ys.T @ sm, ys.T @ ys, jnp.sum(logs))

    def step(params, ys):
        def iterate(params, _):
            sums = lib.vmap(lambda y: expectations(params, y))(ys)
            s00, s11, s, s10, yx, yy, log = [jnp.sum(x, axis=0) for x in sums]
            a = jnp.linalg.solve(s00, s10.T).T
            c = jnp.linalg.solve(s, yx.T).T
            q = (s11 - a @ s10.T) / (series * (length - 1))
            r = (yy - c @ yx.T) / (series * length)
            return (a, c, 0.5 * (q + q.T), 0.5 * (r + r.T)), log

        return lax.scan(iterate, params, None, length=iterations)

    rng = np.random.default_rng(0)
    basis, _ = np.linalg.qr(rng.standard_normal((states, states)))
    a, c = 0.95 * basis, rng.standard_normal((seen, states))
    x, ys = rng.standard_normal((series, states)), []
    for _ in range(length):
        x = x @ a.T + 0.3 * rng.standard_normal((series, states))
        ys.append(x @ c.T + 0.5 * rng.standard_normal((series, seen)))
    params = (0.9 * np.eye(states) + 0.1 * a, c + 0.3 * rng.standard_normal(c.shape),
              np.eye(states), np.eye(seen))
    return step, (tuple(p.astype(np.float32) for p in params),
                  np.stack(ys, axis=1).astype(np.float32))
