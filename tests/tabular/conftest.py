"""Small tables in many blocks, as large ones are read and written."""

import pytest


@pytest.fixture
def cut(monkeypatch):
    """Give the sizes of a module, by which tables are cut in pieces, other values."""

    def set_sizes(module, **sizes):
        for name, size in sizes.items():
            monkeypatch.setattr(module, name, size)

    return set_sizes
