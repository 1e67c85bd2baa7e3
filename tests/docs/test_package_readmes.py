"""The Python blocks of the packages' READMEs run, with the files and names that they speak of."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_runtime import Randomizer

from labeldp_compile.cli import main
from tests.docs.pages import ROOT
from tests.fixtures.compiled import integer_spec, joint_spec, sets_spec
from tests.policy.company import key

ROWS = 60
VISITS = integer_spec(13, "debiased_rr", name="doctor-visits")
INCOME = sets_spec("{kind: categorical, values: [low, high]}", "{default: low}", 1).replace(
    "subset_selection", "randomized_response"
)
SPECS = {
    "visits": VISITS,
    "income": INCOME,
    "sets": sets_spec(
        "{kind: categorical, values: [red, green, blue, black, grey, white]}", "{default: red}", 1
    ),
    "joint": joint_spec().replace("sold", "converted"),
    "groups": VISITS.replace("{kind: uniform}", "{kind: public, data: people.parquet}")
    + "groups: {column: age, bands: [18, 65]}\n",
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with an artifact of each spec, signed; the one of visits under two names."""
    folder = tmp_path_factory.mktemp("readmes")
    key(folder, "author")
    (folder / "author.pem").rename(folder / "public.pem")
    people = {"age": [*range(ROWS)], "y": [row % 13 for row in range(ROWS)]}
    pq.write_table(pa.table(people), folder / "people.parquet")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        command("keygen", "labels.key")
        for name, spec in {"doctor-visits": VISITS, **SPECS}.items():
            Path(f"{name}.yaml").write_text(re.sub("(?m)^name: .*", f"name: {name}", spec))
            command("compile", f"{name}.yaml", "-o", ".", "--sign", "author-secret.pem")
    return folder


def command(*words):
    done = CliRunner().invoke(main, [*words, "--quiet"])
    assert done.exit_code == 0, done.output


def run(package, names, before=lambda number: None):
    """Execute the blocks of a package's README one after the other."""
    text = (ROOT / package / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    for number, block in enumerate(blocks):
        before(number)
        exec(compile(block, f"{package}/README.md", "exec"), names)
    return len(blocks)


def test_the_verifiers(built, inside, capsys):
    inside(built)
    assert run("verifier", {}) == 1
    assert capsys.readouterr().out == "1.0\n"


def test_the_runtimes(built, inside):
    inside(built)
    labels = [3] * ROWS
    names = {
        "digest": hashlib.sha256(Path("doctor-visits.onnx").read_bytes()).hexdigest(),
        "labels": labels,
        "ages": np.arange(ROWS),
        "visit_ids": [*range(ROWS)],
    }
    artifacts = {2: "groups", 3: "sets", 4: "joint"}
    joint = pd.DataFrame({"converted": ["no", "yes"], "value": [0, 2], "code": [7, -3]})

    def before(number):
        names["frame"] = joint if number == 4 else pd.DataFrame({"age": names["ages"]})
        if number in artifacts:
            names["randomizer"] = Randomizer.load(f"{artifacts[number]}.onnx")

    assert run("runtime", names, before) == 6


def test_the_learners(built, inside):
    pytest.importorskip("labeldp_learn")
    inside(built)
    draw = np.random.default_rng(0)
    names = {
        "features": draw.normal(size=(ROWS, 2)),
        "visits": Randomizer.load("visits.onnx")(draw.integers(0, 13, ROWS)),
        "income": Randomizer.load("income.onnx")(draw.choice(["low", "high"], ROWS)),
    }
    assert run("learn", names) == 1
