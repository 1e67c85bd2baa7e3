"""A mechanism takes one file and one line: those of CONTRIBUTING.md, in a copy of the package."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPEC = """
version: 1
name: added
label: {column: y, domain: {kind: integer, min: 0, max: 4}}
loss: squared
privacy: {epsilon: 1.5}
prior: {kind: uniform}
mechanism: {kind: noisy_identity}
"""


@pytest.fixture(scope="module")
def labeldp(tmp_path_factory):
    """Runs the command of a copy to which the mechanism was added."""
    place = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "labeldp_compile", place / "labeldp_compile")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    file = re.findall(r"^```python\n(.*?)^```$", page, re.S | re.M)[0]
    (line,) = re.findall(r"^\+(.*\n)", page, re.M)
    folder = place / "labeldp_compile" / "mechanisms"
    (folder / "noisy_identity.py").write_text(file, encoding="utf-8")
    registry = folder / "__init__.py"
    text = registry.read_text(encoding="utf-8")
    last = '    "exponential": ("exponential", "Exponential"),\n'
    assert text.count(last) == 1
    registry.write_text(text.replace(last, last + line), encoding="utf-8")
    (place / "added.yaml").write_text(SPEC)
    (place / "table.csv").write_text("y\n" + "0\n1\n2\n3\n4\n" * 20)
    beside = [str(place), str(ROOT / "verifier"), str(ROOT / "runtime")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(beside), "PYTHONSAFEPATH": "1"}

    def run(*arguments):
        done = subprocess.run(
            [sys.executable, "-m", "labeldp_compile.cli", *arguments],
            cwd=place,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run.place, run.environment = place, environment
    return run


def test_it_compiles_and_verifies(labeldp):
    planned = labeldp("plan", "added.yaml", "--verbose")
    assert "noisy_identity" in planned and "closed form" in planned
    labeldp("compile", "added.yaml", "-o", "build")
    verified = labeldp("verify", "build/added.onnx", "--spec", "added.yaml", "--verbose")
    assert "verified." in verified and "a table randomizer: 5 labels, 5 outputs" in verified
    assert "noisy_identity" in labeldp("report", "build/added.onnx")


@pytest.mark.slow
def test_it_is_swept_offered_and_in_the_schema(labeldp):
    named = "randomized_response,noisy_identity"
    swept = labeldp("sweep", "added.yaml", "--epsilon", "1,1.5", "--mechanisms", named)
    losses = {
        name: re.findall(rf"^{name}\s+(\S+)", swept, re.M)
        for name in ("randomized_response", "noisy_identity")
    }
    assert losses["noisy_identity"] and losses["noisy_identity"] == losses["randomized_response"]
    asked = [
        "--column",
        "y",
        "--kind",
        "integer",
        "--range",
        "0..4",
        "--mechanism",
        "noisy_identity",
    ]
    labeldp("init", "table.csv", *asked, "--prior", "uniform", "--yes", "-o", "first.yaml")
    assert "kind: noisy_identity" in (labeldp.place / "first.yaml").read_text()
    labeldp("plan", "first.yaml")
    schema = json.loads(labeldp("schema"))
    described = schema["definitions"]["NoisyIdentity"]["description"]
    assert described == "The label itself, or with the least probability any other label."


def test_it_is_on_the_page_of_all_mechanisms(labeldp):
    code = "import reference; print(*reference.mechanisms_page(), sep='\\n')"
    path = os.pathsep.join([labeldp.environment["PYTHONPATH"], str(ROOT / "docs" / "overrides")])
    page = subprocess.run(
        [sys.executable, "-c", code],
        env=labeldp.environment | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "## `noisy_identity`" in page and "closed form; a table randomizer." in page
    assert "| `k` | needed | number of labels kept as outputs |" in page
