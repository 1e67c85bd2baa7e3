"""A representation takes one file and one line of CONTRIBUTING.md, in a copy of the package."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
CONFIG = """
version: 1
name: rings
data: {kind: npz, train: train.npz, test: test.npz, classes: 2}
representation: {kind: squares}
loss: cross_entropy
method: {kind: none}
"""
TRAINED = """
from pathlib import Path
from labeldp_trainer import load_config, train
from labeldp_trainer.export.onnx.model import check, onnx_model
from labeldp_trainer.outcomes.predict import open_trained
print(train(load_config(Path("t.yaml")), Path("run")).metrics["test_accuracy"])
trained = open_trained(Path("run"))
print(check(trained, onnx_model(trained)).rows)
"""


def test_it_trains_and_is_exported(tmp_path):
    """Two rings, which are apart in squares only."""
    shutil.copytree(ROOT / "trainer" / "labeldp_trainer", tmp_path / "labeldp_trainer")
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (file,) = re.findall(r"^```python\n(\"\"\"Columns and.*?)^```$", page, re.S | re.M)
    (line,) = re.findall(r"^\+(.*Squares.*\n)", page, re.M)
    package = tmp_path / "labeldp_trainer"
    (package / "representations" / "squares.py").write_text(file, encoding="utf-8")
    kinds = package / "config" / "representation.py"
    text = kinds.read_text(encoding="utf-8")
    last = '    "joined": ("representations.composed", "Joined"),\n'
    assert text.count(last) == 1
    kinds.write_text(text.replace(last, last + line), encoding="utf-8")
    for name, rows in (("train", 300), ("test", 100)):
        random = np.random.default_rng(rows)
        y, turn = random.integers(0, 2, rows), random.uniform(0, 2 * np.pi, rows)
        x = (1.0 + y)[:, None] * np.stack([np.cos(turn), np.sin(turn)], axis=1)
        np.savez(tmp_path / f"{name}.npz", x=x.astype(np.float32), y=y)
    (tmp_path / "t.yaml").write_text(CONFIG)
    beside = [tmp_path, *(ROOT / name for name in (".", "verifier", "runtime", "learn"))]
    done = subprocess.run(
        [sys.executable, "-c", TRAINED],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, beside))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    accuracy, compared = done.stdout.split()
    assert float(accuracy) == 1.0 and int(compared) == 100
