"""One name for one class in all of the runtime: of two of a name the linker takes any.

Both would have the same functions, and memory that one took would be given back by the other.
"""

import re
from collections import defaultdict
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "csrc"
OF_THIS_FILE = re.compile(r"^namespace \{.*?^\}  // namespace$", re.M | re.S)
CLASS = re.compile(
    r"^(?:class|struct)(?: alignas\([^)]*\))? (\w+)(?: final)?(?: :[^;{]*)? \{", re.M)
NAMESPACE = re.compile(r"^namespace ([\w:]+) \{", re.M)


def classes(text):
    """The names of the classes that other files see, in their namespaces."""
    text = OF_THIS_FILE.sub("", text)
    for found in CLASS.finditer(text):
        outer = NAMESPACE.findall(text[:found.start()])
        yield f"{outer[-1] if outer else ''}::{found[1]}"


def test_a_class_is_defined_once():
    places = defaultdict(set)
    for file in sorted(SOURCES.rglob("*")):
        if file.suffix in (".h", ".cpp"):
            for name in classes(file.read_text()):
                places[name].add(file.name)
    assert len(places) > 100
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_two_of_a_name_are_found():
    text = "namespace a {\nnamespace {\nclass Own {};\n}  // namespace\nclass X : Y {\n};\n}"
    assert list(classes(text)) == ["a::X"]
