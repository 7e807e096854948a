"""Beam search with a GRU and additive attention over encoded sentences (Bahdanau et al. 2015)."""

import numpy as np

FIELD = "machine translation"
SIZES = {
    "tiny": dict(batch=2, source=4, beams=2, steps=3, width=8, words=12),
    "small": dict(batch=4, source=10, beams=3, steps=6, width=32, words=100),
    "large": dict(batch=16, source=40, beams=4, steps=20, width=512, words=16384),
}
TOLERANCE = {"cpu": 1e-2, "gpu": 1e-1}  # a beam of nearly the same score is another


def make(lib, batch, source, beams, steps, width, words):
    jnp = lib.numpy

    def gru(cell, h, x):
        gates = lib.nn.sigmoid(x @ cell["wi"] + h @ cell["wh"])
        reset, update = jnp.split(gates, 2, axis=-1)
        new = jnp.tanh(x @ cell["ci"] + (reset * h) @ cell["ch"])
        return update * h + (1 - update) * new

    def encode(params, text):
        x = jnp.swapaxes(params["embedding"][text], 0, 1)
        start = jnp.zeros((batch, width))

        def run(cell, reverse):
            def step(h, x):
                h = gru(cell, h, x)
                return h, h

            return lib.lax.scan(step, start, x, reverse=reverse)[1]

        both = jnp.concatenate([run(params["forth"], False), run(params["back"], True)], axis=-1)
        return jnp.swapaxes(both, 0, 1)

    def attend(params, h, memory, keys, mask):
        scores = jnp.tanh((h @ params["query"])[:, :, None] + keys[:, None]) @ params["score"]
        weights = lib.nn.softmax(jnp.where(mask[:, None], scores, -1e9), axis=-1)
        return jnp.einsum("bks,bsd->bkd", weights, memory)

    def translate(params, text, lengths):
        memory = encode(params, text)
        keys = memory @ params["key"]
        mask = jnp.arange(source) < lengths[:, None]

        def step(state, _):
            h, score, last, done = state
            seen = attend(params, h, memory, keys, mask)
            h = gru(params["cell"], h, jnp.concatenate([params["embedding"][last], seen], axis=-1))
            logits = lib.nn.log_softmax(h @ params["embedding"].T)
            ended = jnp.where(jnp.arange(words) == 0, 0.0, -1e9)
            total = score[..., None] + jnp.where(done[..., None], ended, logits)
            score, best = lib.lax.top_k(total.reshape(batch, beams * words), beams)
            beam, word = best // words, best % words
            h = jnp.take_along_axis(h, beam[..., None], axis=1)
            done = jnp.take_along_axis(done, beam, axis=1) | (word == 0)
            return (h, score, word, done), (beam, word)

        h = jnp.repeat(jnp.tanh(memory[:, 0] @ params["start"])[:, None], beams, axis=1)
        score = jnp.tile(jnp.where(jnp.arange(beams) == 0, 0.0, -1e9), (batch, 1))
        first = jnp.ones((batch, beams), dtype=jnp.int32)
        state = (h, score, first, jnp.zeros((batch, beams), dtype=bool))
        (_, score, _, done), (origins, chosen) = lib.lax.scan(step, state, None, length=steps)

        def trace(beam, made):
            origin, word = made
            word = jnp.take_along_axis(word, beam, axis=1)
            return jnp.take_along_axis(origin, beam, axis=1), word

        beam = jnp.tile(jnp.arange(beams), (batch, 1))
        _, sentences = lib.lax.scan(trace, beam, (origins, chosen), reverse=True)
        return jnp.moveaxis(sentences, 0, -1), score, done

    rng = np.random.default_rng(0)

    def draw(rows, columns, scale=1.0):
        return (scale * rng.standard_normal((rows, columns)) / np.sqrt(rows)).astype(np.float32)

    def cell(inputs):
        return {"wi": draw(inputs, 2 * width), "wh": draw(width, 2 * width),
                "ci": draw(inputs, width), "ch": draw(width, width)}  # fmt: skip

    params = {
        "embedding": draw(words, width, 4 * np.sqrt(words / width)),
        "forth": cell(width),
        "back": cell(width),
        "cell": cell(3 * width),
        "query": draw(width, width),
        "key": draw(2 * width, width),
        "score": draw(width, 1)[:, 0],
        "start": draw(2 * width, width),
    }
    text = rng.integers(1, words, (batch, source)).astype(np.int32)
    lengths = rng.integers(source // 2, source + 1, batch).astype(np.int32)
    return translate, (params, text, lengths)
