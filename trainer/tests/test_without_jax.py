"""Models in closed form are computed by numpy: JAX, which takes seconds to start, is not loaded."""

import subprocess
import sys

from trainer.tests.interactions import tables_helpers

TRAIN = """
import sys
from labeldp_trainer.cli import train_command

for name in sys.argv[1:]:
    train_command([f"{name}.yaml", "-o", name], standalone_mode=False)
loaded = [name for name in ("jax", "optax", "orbax") if name in sys.modules]
assert not loaded, loaded
"""


def test_models_of_interactions_do_not_load_jax(tmp_path):
    tables_helpers.write(tmp_path, 300)
    staged = tables_helpers.CLASSES
    true = "method: {kind: none}\nloss: cross_entropy\nmodel: {kind: interactions}\n"
    texts = {"staged": staged, "none": staged.split("method:")[0] + true}
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-c", TRAIN, *texts]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all((tmp_path / name / "params.npz").exists() for name in texts)
