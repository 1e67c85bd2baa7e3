"""A revision of the text loses nothing: the JSON of training runs keeps keys, values and numbers.

``kept_json.json`` holds what the commands wrote and printed before all sentences were rewritten
(``python -m trainer.tests.test_kept_json`` writes it again; only a new version of a form may).
``tests/cli`` has the same of the other commands. Of a value that depends on noise, the time or the
machine, its key is kept.
"""

import json
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory

from trainer.tests.command import document, labeldp, written
from trainer.tests.kept import facts, lost
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
MASKED = {
    *("test", "test_loss", "test_accuracy", "test_mae", "test_mse", "no_privacy", "seconds"),
    *("versions", "device", "devices", "environment", "program_sha256", "representation_sha256"),
    *("certificate_source_sha256", "largest_bias"),
}
"""Keys whose values depend on noise, on the time, or on the machine and what it has installed."""
ROUNDED = {
    *("sigma", "squared_sensitivity", "gap_to_the_best_noise_shape", "rows_sha256"),
    *("proved_delta", "mechanism", "statement"),
}
"""Keys of ``one_release`` whose values depend on how a processor rounds features."""


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
    return {
        name: dict(facts(node, MASKED | ROUNDED if name.startswith("once/") else MASKED))
        for name, node in documents(folder)
    }


def test_every_key_value_and_number_is_still_there(tmp_path):
    kept, now = json.loads(KEPT.read_text(encoding="utf-8")), found(tmp_path)
    assert kept.keys() == now.keys()
    missing = {name: gone for name in kept if (gone := lost(kept[name], now[name]))}
    assert not missing


if __name__ == "__main__":
    with TemporaryDirectory() as made:
        text = json.dumps(found(Path(made)), indent=0, ensure_ascii=False)
    KEPT.write_text(text + "\n", encoding="utf-8")
