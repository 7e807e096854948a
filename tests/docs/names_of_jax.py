"""docs/reference/names_of_jax.md, written anew: `python -m tests.docs.names_of_jax`."""

from tests.docs.names_pages import NamesPage

PAGE = NamesPage("names_of_jax", "jax", "functrans", """\
# Names of JAX

For those who look for a name of JAX.

Every public name of JAX {version}, by module, and what there is in its place where functrans does
not have it. Code is what to write instead. What behaves differently under the same name is in
[Differences from JAX](differences_from_jax.md). This page is written by
`python -m tests.docs.names_of_jax`, and a test fails where it is not what the package has.

| module of JAX | names | in functrans |
|---|---|---|
""")

if __name__ == "__main__":
    PAGE.path.write_text(PAGE.text())
