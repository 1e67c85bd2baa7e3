"""What several tests of the runtime ask for by name."""

import pytest

from runtime.tests.copied_process import CopyingProcess


@pytest.fixture(scope="session")
def copying_process(tmp_path_factory):
    return CopyingProcess(tmp_path_factory.mktemp("copied_process"))
