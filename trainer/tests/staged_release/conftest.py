"""Tables of tests have few rows, but ask for pairs and for more functions, as large ones do."""

import pytest
from labeldp_trainer.staged_release import plan


@pytest.fixture(autouse=True, scope="package")
def few_rows():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan, "_ROWS_OF_REFINED", 1e-3)
        yield
