import pytest
from fake import build, run


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return build(tmp_path_factory.mktemp("cuda"))


@pytest.fixture
def on_fake(library):
    """Runs code in a process of its own where the fake is the driver."""
    return lambda code, **options: run(library, code, **options)
