"""A mechanism takes one file and one line: those of CONTRIBUTING.md, in a copy of the package."""

import re

import pytest

from tests.fixtures.copies import ROOT, apply, copied, diffs
from tests.fixtures.specs import spec


@pytest.fixture(scope="module")
def labeldp(tmp_path_factory):
    """Runs the command of a copy to which the mechanism was added."""
    place = tmp_path_factory.mktemp("copy")
    run = copied(place, "labeldp_compile")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    file = re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M)[0]
    folder = place / "labeldp_compile" / "mechanisms"
    (folder / "noisy_identity.py").write_text(file, encoding="utf-8")
    (diff,) = diffs("Adding a mechanism")
    apply(diff, folder / "__init__.py")
    (place / "added.yaml").write_text(
        spec(labels=5, name="added", epsilon=1.5, mechanism="noisy_identity")
    )
    (place / "table.csv").write_text("y\n" + "0\n1\n2\n3\n4\n" * 20)
    return run


def test_it_compiles_and_verifies(labeldp):
    planned = labeldp("plan", "added.yaml", "--verbose")
    assert "noisy_identity" in planned and "closed form" in planned
    labeldp("compile", "added.yaml", "-o", "build")
    verified = labeldp("verify", "build/added.onnx", "--spec", "added.yaml", "--verbose")
    assert "verified." in verified and "a table randomizer: 5 labels, 5 outputs" in verified
    assert "noisy_identity" in labeldp("report", "build/added.onnx")
