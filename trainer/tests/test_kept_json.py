"""The JSON of training runs keeps its keys.

``python -m trainer.tests.test_kept_json`` writes ``kept_json.json`` again; only a new version of a
form may lose a key. ``tests/cli`` has the same of the other commands.
"""

import json
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from trainer.tests.command import document, labeldp, written
from trainer.tests.trainer_helpers import CLASSES, CONFIG, write_artifact, write_tables

KEPT = Path(__file__).with_name("kept_json.json")
NUMBERS = CONFIG.replace("mlp, hidden: [8], embedding: 2", "linear").replace(
    "epochs: 3, batch_size: 50, checkpoint_every: 3", "epochs: 1, batch_size: 50"
)
LISTED = CLASSES.replace("label: colour", "label: colour\n  classes: [red, green, blue]")
COLOURS = LISTED.replace("mlp, hidden: [8], embedding: 2", "linear").replace(
    "epochs: 3, batch_size: 50, checkpoint_every: 3", "epochs: 1, batch_size: 50"
)
SHORT = LISTED[: LISTED.index("model:")] + "loss: cross_entropy\nmethod: {kind: none}\n"
METHODS = {
    "true": (NUMBERS, "none"),
    "private": (NUMBERS, "privatized, artifact: numbers.onnx"),
    "central": (COLOURS, "dp_sgd, epsilon: 8, delta: 1e-5"),
    "stages": (COLOURS, "lp_mst, epsilon: 2"),
    "teachers": (SHORT, "pate, epsilon: 30, delta: 1e-5, teachers: 10, queries: 20"),
    "once": (SHORT, "one_release, epsilon: 2, delta: 1e-5"),
}


def paths(node, path=""):
    """The path of each key; of a list, the keys of its items."""
    for key, value in node.items() if isinstance(node, dict) else ():
        yield f"{path}/{key}"
        yield from paths(value, f"{path}/{key}")
    for value in node if isinstance(node, list) else ():
        yield from paths(value, f"{path}#")


def documents(folder):
    """Those of a run of each method, and what ``labeldp runs`` says of them."""
    with chdir(folder):
        write_tables(Path())
        write_artifact(Path())
        (folder / "runs").mkdir()
        for name, (text, method) in METHODS.items():
            config = written(Path(), text.replace("{kind: none}", f"{{kind: {method}}}"), name)
            labeldp("train", config, "-o", f"runs/{name}")
            for part in ("run", "privacy", "result"):
                yield f"{name}/{part}.json", document(folder / "runs" / name, part)
        yield "runs --json", json.loads(labeldp("runs", "runs", "--json"))


def found(folder):
    return {name: sorted({*paths(node)}) for name, node in documents(folder)}


@pytest.mark.slow
def test_every_key_is_still_there(tmp_path):
    kept, now = json.loads(KEPT.read_text(encoding="utf-8")), found(tmp_path)
    assert kept.keys() == now.keys()
    missing = {name: gone for name in kept if (gone := {*kept[name]} - {*now[name]})}
    assert not missing


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        text = json.dumps(found(Path(made)), indent=0, ensure_ascii=False)
    KEPT.write_text(text + "\n", encoding="utf-8")
