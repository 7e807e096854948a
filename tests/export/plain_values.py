"""Places in plain values, and other values in them: what fuzz tests of files change."""

from hypothesis import strategies as st

INTEGERS = st.one_of(st.integers(-2**63, 2**64 - 1), st.integers(-3, 40),
                     st.sampled_from([2**31 - 1, 2**31, 2**32, 2**46, 2**62, 2**63 - 1]))


def places(value, at=()):
    """The paths of a value and of all in it."""
    yield at
    if isinstance(value, list):
        for k, item in enumerate(value):
            yield from places(item, (*at, k))


def at_place(value, at):
    for k in at:
        value = value[k]
    return value


def replaced(value, at, new):
    if not at:
        return new
    return [replaced(v, at[1:], new) if k == at[0] else v for k, v in enumerate(value)]


def changed(value, changes):
    """A value with others at some of its places, where these are still there."""
    for at, new in changes:
        try:
            at_place(value, at)
            value = replaced(value, at, new)
        except (IndexError, TypeError):
            pass
    return value


def changes_of(value, most=3):
    """A few places of a value, with what is to stand there: also other parts of it."""
    known = list(places(value))
    parts = st.sampled_from(known).map(lambda at: at_place(value, at))
    plain = st.one_of(st.none(), st.booleans(), INTEGERS, st.floats(), st.text(max_size=20),
                      st.binary(max_size=8), st.complex_numbers(), parts,
                      st.lists(st.integers(-2, 70), max_size=5))
    return st.lists(st.tuples(st.sampled_from(known), plain), min_size=1, max_size=most)
