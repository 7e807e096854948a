"""Records are dataclasses, made when they are first used."""

import copy
import dataclasses
import pickle
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field

import pytest

from functrans.core.record import Record


class Point(Record):
    x: int
    y: int = 2
    names: list = field(default_factory=list, compare=False)


class Counter(Record, frozen=False):
    count: int = 0


class Node(Record, eq=False, repr=False):
    inner: object


class Deeper(Point):
    z: int = 3

    def total(self):
        return self.x + self.y + self.z


def is_made(cls):
    return vars(cls)["_options"] is None


def test_a_record_is_a_dataclass():
    class Fresh(Record):
        a: int
        b: int = 1

    assert not is_made(Fresh)
    one = Fresh(3)
    assert is_made(Fresh)
    assert (one.a, one.b, repr(one).rpartition(".")[2]) == (3, 1, "Fresh(a=3, b=1)")
    assert one == Fresh(3, 1) != Fresh(4) and hash(one) == hash(Fresh(3))
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.a = 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        del one.a
    with pytest.raises(TypeError, match="required positional argument"):
        Fresh()


def test_functions_of_dataclasses_know_a_record_before_it_is_used():
    class Fresh(Record):
        a: int = 1

    assert dataclasses.is_dataclass(Fresh)
    assert [f.name for f in dataclasses.fields(Fresh)] == ["a"]
    assert dataclasses.replace(Fresh(), a=2).a == 2
    assert dataclasses.asdict(Fresh(5)) == {"a": 5}


def test_mutable_records_have_no_hash():
    one = Counter()
    one.count += 1
    assert one == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)
    assert Counter.__setattr__ is object.__setattr__


def test_records_without_eq_are_themselves_alone():
    one = Node(1)
    assert one != Node(1) and hash(one) == object.__hash__(one)
    assert repr(one).startswith("<") and Node.__eq__ is object.__eq__
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.inner = 2


def test_a_record_of_a_record_has_its_fields():
    assert Deeper(1).total() == 6 and Deeper(1) != Point(1)
    assert [f.name for f in dataclasses.fields(Deeper)] == ["x", "y", "names", "z"]
    with pytest.raises(TypeError, match="frozen"):
        class Mutable(Point, frozen=False):
            pass


def test_methods_of_its_own_stay():
    class Told(Record):
        a: int

        def __repr__(self):
            return "told"

        def __eq__(self, other):
            return True

        __hash__ = Record.__hash__

    assert repr(Told(1)) == "told" and Told(1) == Told(2)


def test_it_matches_patterns():
    match Point(4, 5):
        case Point(x, y):
            assert (x, y) == (4, 5)


@pytest.mark.parametrize("used", ["one == two and hash(one) == hash(two)",
                                  "repr(one) == 'Size(rows=(3,), unit=1)'",
                                  "replace(one, unit=2).unit == 2"])
def test_one_that_comes_from_a_pickle_needs_no_call_before(used, tmp_path):
    # its class is made by the first method that is called, and no constructor is
    file = tmp_path / "records_of_a_test.py"
    file.write_text(textwrap.dedent("""
        from functrans.core.record import Record

        class Size(Record):
            rows: tuple
            unit: int = 1
    """))
    write = f"""
        import sys, pickle; sys.path.insert(0, {str(tmp_path)!r})
        from records_of_a_test import Size
        sys.stdout.buffer.write(pickle.dumps(Size((3,))))
    """
    data = subprocess.run([sys.executable, "-c", textwrap.dedent(write)], check=True,
                          capture_output=True).stdout
    read = f"""
        import sys, pickle; sys.path.insert(0, {str(tmp_path)!r})
        from dataclasses import FrozenInstanceError, replace
        import records_of_a_test
        one, two = pickle.loads({data!r}), pickle.loads({data!r})
        assert records_of_a_test.Size._options
        assert {used}
        try:
            one.unit = 4
        except FrozenInstanceError:
            print("frozen")
    """
    assert subprocess.run([sys.executable, "-c", textwrap.dedent(read)], check=True,
                          capture_output=True, text=True).stdout == "frozen\n"


def test_copies():
    one = Point(1, names=["a"])
    assert copy.copy(one) == one and copy.deepcopy(one).names is not one.names
    assert pickle.loads(pickle.dumps(one)) == one


def test_threads_make_a_record_once():
    for _ in range(50):
        assert use_by_threads() == [(1, [])] * 4


def use_by_threads():
    class Fresh(Record):
        a: int
        b: list = field(default_factory=list)

    start = threading.Barrier(4)

    def work(_):
        start.wait()
        return dataclasses.astuple(Fresh(1))

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(work, range(4)))
