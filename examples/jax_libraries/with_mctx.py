"""Tree search: MuZero's policy and Gumbel MuZero's on a small game of chance, batched, with the
search inside one compiled function."""

import jax
import jax.numpy as jnp
import mctx

LIBRARIES = ["mctx"]
STATES, ACTIONS = 16, 4
REWARDS = jax.random.normal(jax.random.key(3), (STATES, ACTIONS))
PRIORS = jax.random.normal(jax.random.key(4), (STATES, ACTIONS))


def play(params, key, action, state):
    """The reward of an action, what comes after it, and the next state."""
    following = (state * 3 + action + 1) % STATES
    return mctx.RecurrentFnOutput(
        reward=params[state, action], discount=jnp.full(state.shape, 0.9),
        prior_logits=PRIORS[following], value=params[following].mean(-1)), following


def root(states):
    return mctx.RootFnOutput(prior_logits=PRIORS[states], value=REWARDS[states].mean(-1),
                             embedding=states)


@jax.jit
def muzero(key, states):
    found = mctx.muzero_policy(REWARDS, key, root(states), play, num_simulations=24,
                               dirichlet_fraction=0.1)
    return found.action, found.action_weights, found.search_tree.summary().value


@jax.jit
def gumbel(key, states):
    found = mctx.gumbel_muzero_policy(
        REWARDS, key, root(states), play, num_simulations=16, max_num_considered_actions=4,
        invalid_actions=jnp.arange(ACTIONS) == (states % ACTIONS)[:, None])
    return found.action, found.action_weights


def results():
    states = jnp.arange(6)
    action, weights, value = muzero(jax.random.key(0), states)
    chosen, chances = gumbel(jax.random.key(1), states)
    return {"action": action, "weights": weights, "value": value, "chosen": chosen,
            "chances": chances}


def program():
    return muzero, (jax.random.key(0), jnp.arange(6))
