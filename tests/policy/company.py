"""Specs, artifacts, keys, a ledger, runs and a policy of a company, copied for each case."""

import hashlib
import json
import shutil
from contextlib import chdir
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from labeldp_compile.cli import main

ROWS = 3000
SPEC = {
    "version": 1,
    "name": "visits",
    "label": {"column": "visits", "domain": {"kind": "integer", "min": 0, "max": 3}},
    "loss": "squared",
    "privacy": {
        "epsilon": 1,
        "split": {"prior": 0.1, "label": 0.9},
        "labels_per_user": 2,
        "ledger": "../budget.ledger",
    },
    "prior": {
        "kind": "private",
        "data": "../visits.parquet",
        "data_set": "clinic",
        "data_version": "v1",
    },
    "mechanism": {"kind": "debiased_rr"},
}
POLICY = {
    "version": 1,
    "name": "the company",
    "max_epsilon_label": 0.9,
    "max_epsilon_total": 1,
    "max_epsilon_person": 2,
    "max_labels_per_person": 2,
    "max_delta": 1e-6,
    "max_epsilon_dataset": 0.5,
    "max_epsilon_period": {"epsilon": 0.2, "days": 30},
    "mechanisms": ["debiased_rr", "optimal_unbiased", "one_release"],
    "adjacency": ["label", "person"],
    "prior_booked": "budget.ledger",
    "draw_once": True,
    "signed_by": ["release.pem", "second.pem"],
    "min_group_rows": 500,
    "usefulness": {"max_mean_error": 0.5, "rows": 3000, "min_outputs": 2, "no_warnings": True},
    "specs": "specs",
}
METHOD = {"kind": "one_release", "epsilon": 0.5, "delta": 1e-6, "label_range": [0, 3]}
PERSONS = {"user_column": "person", "max_examples_per_user": 2}


def changed(stated, **changes):
    """A copy with changes; ``privacy__epsilon=2`` goes inside, None removes a key."""
    copy = json.loads(json.dumps(stated))
    for path, value in changes.items():
        *outer, last = path.split("__")
        inside = copy
        for key in outer:
            inside = inside[key]
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
    return copy


def labeldp(*words, where):
    """The result of a command given in a folder; a traceback fails the test."""
    with chdir(where):
        result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def done(*words, where):
    result = labeldp(*words, where=where)
    assert result.exit_code == 0, result.output
    return result


def write(path, document):
    path.write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    return path


def table(folder, rows=ROWS, *, more=()):
    columns = {"visits": [i % 4 for i in range(rows)], "site": [i % 2 for i in range(rows)]}
    columns |= dict.fromkeys(more, [0] * rows)
    pq.write_table(pa.table(columns), folder / "visits.parquet")


def key(folder, name, kind="ed25519"):
    made = (
        ed25519.Ed25519PrivateKey.generate()
        if kind == "ed25519"
        else ec.generate_private_key(ec.SECP256R1())
    )
    private = made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = made.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}-secret.pem").write_bytes(private)
    (folder / f"{name}-secret.pem").chmod(0o600)
    (folder / f"{name}.pem").write_bytes(public)


def compiled(folder, spec, *, name="visits", where="build", sign="release"):
    """An artifact of a spec that is written into the folder of specs."""
    write(folder / "specs" / f"{name}.yaml", spec)
    words = ["compile", f"specs/{name}.yaml", "-o", where, "--overwrite", "--quiet"]
    done(*words, *(["--sign", f"{sign}-secret.pem"] if sign else []), where=folder)


def run(folder, *, epsilon=0.5, delta=1e-6, name="run", **method):
    """A run folder, as far as its statement and its config go."""
    path = folder / "runs" / name
    path.mkdir(parents=True)
    stated = {**METHOD, "epsilon": epsilon, "delta": delta, **PERSONS, **method}
    stated = {key: value for key, value in stated.items() if value is not None}
    persons = "max_examples_per_user" in stated
    if stated["kind"] == "none":
        stated = {"kind": "none"}
    config = {
        "version": 1,
        "name": name,
        "data": {"kind": "npz", "train": "t.npz", "label": "y", "features": "x"},
        "loss": "squared",
        "method": stated,
    }
    if stated["kind"] == "none":
        config |= {"model": {"kind": "linear"}, "optimizer": {"learning_rate": 0.1}}
        config |= {"training": {"epochs": 1, "batch_size": 1}}
    text = yaml.safe_dump(config).encode()
    (path / "config.yaml").write_bytes(text)
    digest = hashlib.sha256(text).hexdigest()
    facts = {"format_version": "1.0", "config_sha256": digest}
    details = {"unit": "user" if persons else "label"}
    promise = {"method": stated["kind"], "details": details, "epsilon": epsilon, "delta": delta}
    if stated["kind"] == "none":
        promise |= {"epsilon": None, "delta": None}
    documents = {"run.json": facts, "privacy.json": promise, "result.json": {"test_mse": 1.0}}
    for file, document in documents.items():
        (path / file).write_text(json.dumps(document), encoding="utf-8")
    return path


def company(folder):
    """Everything, all of which meets the policy."""
    (folder / "specs").mkdir()
    table(folder)
    for name, kind in (("release", "ed25519"), ("second", "p256"), ("stranger", "ed25519")):
        key(folder, name, kind)
    done("ledger", "init", "budget.ledger", where=folder)
    budget = ["ledger", "set-budget", "budget.ledger", "--data-set", "clinic", "--epsilon", "0.2"]
    done(*budget, where=folder)
    compiled(folder, SPEC)
    run(folder)
    write(folder / "policy.yaml", POLICY)


def copied(source: Path, target: Path) -> Path:
    """A copy; a ledger stays a file of its owner alone."""
    return Path(shutil.copytree(source, target, copy_function=shutil.copy2, symlinks=True))
