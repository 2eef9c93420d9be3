"""The driver program as a fixture."""

import pytest

from tests.build import driver as program


@pytest.fixture(scope="session")
def driver(tmp_path_factory):
    """Path of the compiled tests/build/driver.c."""
    return program.build(tmp_path_factory.mktemp("driver"))
