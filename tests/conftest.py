"""What several tests of the compiler ask for by name."""

from contextlib import chdir

import pytest

from runtime.tests.copied_process import CopyingProcess


@pytest.fixture(scope="session")
def copying_process(tmp_path_factory):
    return CopyingProcess(tmp_path_factory.mktemp("copied_process"))


@pytest.fixture
def here(tmp_path):
    """A new folder in which commands are given."""
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def once(monkeypatch):
    """``once(module, name, before)``: something happens before the next call of a function."""

    def arranged(module, name, before):
        real = getattr(module, name)

        def called(*arguments, **options):
            monkeypatch.setattr(module, name, real)
            before()
            return real(*arguments, **options)

        monkeypatch.setattr(module, name, called)

    return arranged
