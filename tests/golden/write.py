"""Compile the specs of a folder of golden files: ``python -m tests.golden.write plain``.

Until the release a change of the format writes all of them again (delete the files and entries of
the manifest). From then on a file that exists is never touched: later versions must verify and run
exactly those bytes. For something new, add a spec, with what it reads (``*.csv``), and run this.
"""

import hashlib
import json
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from labeldp_runtime import Key, Randomizer

from labeldp_compile import compile_spec
from labeldp_compile.mechanisms import rr_on_bins

HERE = Path(__file__).parent
COUNT = 96
SIGNED = "rr-on-bins-squared"
SECRET = bytes(range(32))  # of a test: nobody may use it for labels
CONTEXT = "old artifacts"


def fixed_words(name: str, count: int, words_per_label: int) -> np.ndarray:
    """[n] or [n, w] words that depend on the name only: SHAKE-256, little-endian."""
    data = hashlib.shake_256(name.encode()).digest(8 * count * words_per_label)
    words = np.frombuffer(data, dtype="<u8").astype(np.uint64)
    return words if words_per_label == 1 else words.reshape(count, words_per_label)


def labels_of(certificate: dict) -> list | dict[str, list]:
    """Labels inside and outside of a domain, by column for a joint label; None is a missing one.

    The columns do not keep step.
    """
    domain = certificate["label"]["domain"]
    if "joint" not in certificate:
        return _pool(domain)
    found = {}
    columns = zip(certificate["joint"]["columns"], domain["columns"], strict=True)
    for i, (column, part) in enumerate(columns):
        pool = _pool(part)
        found[column["name"]] = [pool[(j * (2 * i + 1) + j // 7) % COUNT] for j in range(COUNT)]
    return found


def _pool(domain: dict) -> list:
    if domain["kind"] == "categorical":
        pool = [*domain["values"], "elsewhere" if isinstance(domain["values"][0], str) else 12345]
    elif domain["kind"] == "integer":
        low, high = domain["min"], domain["max"]
        pool = [low - 5, *np.linspace(low, high, 12).astype(int).tolist(), high + 1, None]
    elif domain["kind"] == "grid":
        values = domain["values"]
        middles = [(low + high) / 2 for low, high in pairwise(values)]
        pool = [values[0] - 0.5, *values, *middles, values[-1] + 1e9, None]
    else:
        low, high = domain["min"], domain["max"]
        pool = [low - 0.5, *np.linspace(low, high, 14).tolist(), high + 1e9, None]
    rule = domain["out_of_domain"]
    if isinstance(rule, dict) and "nulls" in rule and rule["nulls"] != "public":
        pool.append(None)
    elif isinstance(rule, dict) and rule.get("nulls") == "public":
        pool = [label for label in pool if label is not None]  # the runtime refuses nulls
    return [pool[i % len(pool)] for i in range(COUNT)]


def rows() -> dict[str, list]:
    """Columns of features, and labels, listed and not, for files with groups (``rows.csv``)."""
    i = np.arange(COUNT)
    return {
        "age": [None if n % 11 == 10 else float(n % 90) for n in (i * 37).tolist()],
        "work": [["no", "private", "é", "e\u0301", None][n % 5] for n in i],
        "code": [[7, -2, 400, 8, None][n % 5] for n in (i * 3).tolist()],
        "number": [[0, 1, 2, 3, -1, None][n % 6] for n in i],
        "y": [int(n) for n in (i * 7 + i // 10) % 10],
    }


def outputs_of(path: Path, labels: list | dict[str, list] | None) -> dict[str, list]:
    """The private labels for the fixed words, and for a fixed key and the ids 0, 1, 2, …

    Without ``labels`` they are those of ``rows``, which a file with groups reads.
    """
    plain = Randomizer.load(path, prepared=True)
    keyed = Randomizer.load(path, key=Key(SECRET), context=CONTEXT, prepared=True)
    columns = {}
    if labels is None:
        table = rows()
        labels, columns = table["y"], {"columns": table}
    words = fixed_words(path.name, COUNT, plain._words_per_label)
    return {
        "words": _listed(plain.apply_words(labels, words, **columns)),
        "keyed": _listed(keyed(labels, ids=list(range(COUNT)), **columns)),
    }


def _listed(drawn: object) -> list:
    if not isinstance(drawn, dict):
        return drawn.tolist()
    return [list(row) for row in zip(*(column.tolist() for column in drawn.values()), strict=True)]


def members_of(path: Path) -> list[list]:
    """The labels in each set, in the order of their numbers; none where they are the labels."""
    randomizer = Randomizer.load(path)
    blocks = randomizer.certificate["sets"]["blocks"]
    return [] if blocks is None else [randomizer.members(o) for o in range(len(blocks))]


def entry_of(path: Path, certificate: dict) -> dict:
    """What the manifest says of a file."""
    labels = None if "groups" in certificate else labels_of(certificate)
    entry = {"mechanism": certificate["mechanism"], "form": certificate["form"]}
    if labels is not None:
        entry["labels"] = labels
    if "sets" in certificate and "joint" not in certificate:
        entry["members"] = members_of(path)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return {"sha256": digest, **entry, **outputs_of(path, labels)}


def main(folder: Path) -> None:
    """Compile every spec of the folder that its manifest does not have yet."""
    listed = folder / "manifest.json"
    manifest = json.loads(listed.read_text("utf-8")) if listed.exists() else {}
    if folder.name.startswith("radii"):  # few labels make the same form, and small files
        rr_on_bins.MAX_CERTIFIED_LABELS = 0
    for spec in sorted(folder.glob("*.yaml")):
        if f"{spec.stem}.onnx" in manifest:
            continue
        path = compile_spec(spec).write(folder, key=_key(folder) if spec.stem == SIGNED else None)
        stated = path.with_suffix(".certificate.json")
        manifest[path.name] = entry_of(path, json.loads(stated.read_text("utf-8")))
        stated.unlink()
    lines = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(entry, ensure_ascii=False)}"
        for name, entry in sorted(manifest.items())
    )
    listed.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _key(folder: Path) -> Ed25519PrivateKey:
    """A key that is forgotten when this process ends; its public half stays."""
    key = Ed25519PrivateKey.generate()
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / "public.pem").write_bytes(public)
    return key


if __name__ == "__main__":
    main(HERE / sys.argv[1])
