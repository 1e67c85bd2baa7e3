"""Write the artifacts of a new format version: ``python -m tests.old_files.write v3``.

A file that exists is never touched: v1 and v2 hold what the compilers of their time wrote, and
later versions must verify and run exactly those bytes. Specs that are new are added.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from labeldp_runtime import Key, Randomizer

from labeldp_compile.pipeline import compile_spec
from tests.old_files.specs import SPECS

COUNT = 96
SIGNED = "rr-on-bins-squared"
SECRET = bytes(range(32))  # of a test: nobody may use it for labels
CONTEXT = "old artifacts"


def fixed_words(name: str, count: int, words_per_label: int) -> np.ndarray:
    """[n] or [n, w] words that depend on the name only: SHAKE-256, little-endian."""
    data = hashlib.shake_256(name.encode()).digest(8 * count * words_per_label)
    words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    return words if words_per_label == 1 else words.reshape(count, words_per_label)


def labels_of(domain: dict) -> list:
    """Labels inside and outside of a certificate's domain; None is a missing one."""
    if domain["kind"] == "categorical":
        pool = [*domain["values"], "elsewhere" if isinstance(domain["values"][0], str) else 12345]
    elif domain["kind"] == "integer":
        low, high = domain["min"], domain["max"]
        pool = [low - 5, *np.linspace(low, high, 12).astype(int).tolist(), high + 1, None]
    else:
        low, high = domain["min"], domain["max"]
        pool = [low - 0.5, *np.linspace(low, high, 14).tolist(), high + 1e9, None]
    return [pool[i % len(pool)] for i in range(COUNT)]


def outputs_of(path: Path, labels: list) -> dict[str, list]:
    """The private labels for the fixed words, and for a fixed key and the ids 0, 1, 2, …"""
    plain = Randomizer.load(path)
    words_per_label = plain._words_per_label
    words = fixed_words(path.name, len(labels), words_per_label)
    keyed = Randomizer.load(path, key=Key(SECRET), context=CONTEXT)
    ids = list(range(len(labels)))
    return {
        "words": plain.apply_words(labels, words).tolist(),
        "keyed": keyed(labels, ids=ids).tolist(),
    }


def main(folder: Path) -> None:
    """Compile every spec of which the folder holds no artifact yet."""
    key = None
    if not (folder / "manifest.json").exists():
        folder.mkdir()
        key = Ed25519PrivateKey.generate()  # forgotten when this process ends
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / "public.pem").write_bytes(public)

    def entry_of(path: Path, certificate: dict) -> dict:
        labels = labels_of(certificate["label"]["domain"])
        return {
            "mechanism": certificate["mechanism"],
            "form": certificate["form"],
            "labels": labels,
            **outputs_of(path, labels),
        }

    write_missing(folder, SPECS, entry_of, {SIGNED: key})


def write_missing(
    folder: Path,
    texts: dict[str, str],
    entry_of: Callable[[Path, dict], dict],
    keys: dict[str, Ed25519PrivateKey | None] | None = None,
) -> None:
    """Compile the specs, by their names, that the folder's manifest does not have yet.

    ``entry_of`` gives from an artifact and its certificate what the manifest is to say of it.
    """
    listed = folder / "manifest.json"
    manifest = json.loads(listed.read_text("utf-8")) if listed.exists() else {}
    if all(f"{name}.onnx" in manifest for name in texts):
        return
    for name, text in texts.items():
        if f"{name}.onnx" in manifest:
            continue
        spec = folder / f"{name}.yaml"
        spec.write_text(text, encoding="utf-8")
        path = compile_spec(spec).write(folder, key=(keys or {}).get(name))
        stated = path.with_suffix(".certificate.json")
        certificate = json.loads(stated.read_text("utf-8"))
        stated.unlink()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        manifest[path.name] = {"sha256": digest, **entry_of(path, certificate)}
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}"
        for name, entry in sorted(manifest.items())
    )
    listed.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(__file__).parent / sys.argv[1])
