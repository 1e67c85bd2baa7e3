"""Files full of control sequences, on a pseudo-terminal: nothing in them is obeyed.

Every case runs twice: with strings that clear the screen, reorder text and print a verdict of their
own, and with plain letters in their place. Both must give the same lines, but for those strings.
"""

import hashlib
import json
import os
import sqlite3
import unicodedata
from fractions import Fraction
from pathlib import Path

import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.graph import write_model

from labeldp_compile.cli import main
from labeldp_compile.cli.command import say
from labeldp_compile.ledger.book import create_ledger, set_budget
from labeldp_compile.ledger.draw_account import Draw, Drawing
from labeldp_compile.ledger.store import open_store
from labeldp_compile.rounding.windows import randomized_response
from tests.fixtures.stated import stated_certificate
from tests.hostile.terminal import lines_of, on_terminal

EVIL = (
    "a\x1b[2J\x1b[H\x1b]0;t\x07\nx.onnx: verified.\r\nok     forged\r\x08\x7f\x85\u202e\u2066\u2028"
    "\u2029\u200b\U000e0041\ue000\x9b31m" + "\u0301" * 40
)
PLAIN = "a" * 60


def artifact(folder, text, *, insecure=False, keys=False, name="x.onnx"):
    """A well-formed artifact with the text wherever the format allows it."""
    categories = (f"{text}1", f"{text}2", "b")
    domain = CategoricalDomain(categories, categories[0])
    prior = {"kind": "uniform", "weights": [1] * 3}
    provenance = Declaration(
        name=text,
        mechanism=text,
        column=text,
        epsilon_label=Fraction(1),
        epsilon_prior=Fraction(0),
        prior=prior,
        spec_digest=text,
        tools={text: text},
        auto=text,
        insecure=text if insecure else None,
    )
    randomizer = randomized_response(categories, range(3), Fraction(1))
    certificate = stated_certificate(domain, randomizer, "zero_one", provenance).to_json()
    if keys:
        certificate["tools"] = {text: 1}
    path = folder / name
    path.write_bytes(write_model(domain, randomizer, certificate))
    return path


def table(folder, text):
    path = folder / "table.parquet"
    columns = {text: [f"{text}1", "b", "b"] * 20, f"{text}2": [1] * 60, "id": list(range(60))}
    pq.write_table(pa.table(columns), path)
    return path


def spec(folder, text, **changes):
    path = folder / "x.yaml"
    stated = {
        "version": 1,
        "name": "example",
        "label": {
            "column": text,
            "domain": {"kind": "categorical", "values": [f"{text}1", f"{text}2", "b"]},
            "out_of_domain": {"default": f"{text}2"},
        },
        "loss": "zero_one",
        "privacy": {"epsilon": 1.0},
        "prior": {"kind": "uniform"},
        "mechanism": {"kind": "randomized_response"},
        **changes,
    }
    path.write_text(yaml.safe_dump(stated, allow_unicode=True), encoding="utf-8")
    return path


def ledger(folder, text):
    path = folder / "x.ledger"
    create_ledger(path)
    set_budget(path, "visits", Fraction(1), text)
    return path


def policy(folder, text, **more):
    path = folder / "policy.yaml"
    stated = {"version": 1, "name": text, "mechanisms": [f"z{text}"], "max_epsilon_label": 0.5}
    path.write_text(yaml.safe_dump(stated | more, allow_unicode=True), encoding="utf-8")
    return path


def drawn(folder, text):
    """A ledger in which labels are booked."""
    path = ledger(folder, text)
    one, facts = Fraction(1), ("a" * 64, "", text, 0, "label")
    Drawing(Draw("x", text, *facts, one, one, "", text, "", text), open_store(path)).book(1)
    return path


def config(folder, text, **changes):
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"version": 1, text: 1, **changes}), encoding="utf-8")
    return path


def training_run(folder, text, version="1.0"):
    """A finished run, as far as a table of runs looks."""
    path = folder / f"run {text[:9].replace('/', '')}"
    path.mkdir()
    data = {"kind": "npz", "train": "t.npz", "label": text, "features": "x"}
    parts = {
        "model": {"kind": "linear"},
        "method": {"kind": "none"},
        "optimizer": {"learning_rate": 0.1},
        "training": {"epochs": 1, "batch_size": 1},
    }
    said = {"version": 1, "name": "n", "data": data, "loss": "squared", **parts}
    given = yaml.safe_dump(said).encode()
    (path / "config.yaml").write_bytes(given)
    digest = hashlib.sha256(given).hexdigest()
    promise = {"method": parts["method"]["kind"], "details": {"unit": text}}
    promise |= {"adjacency": text, "mechanism": text, "statement": text, text: text}
    for key in ("released", "secret", "not_covered", "limits"):
        promise[key] = [text, "b"]
    promise |= {"epsilon": None, "delta": 0.0}
    result = {"test_mse": 1.0, f"test_{text}": 2.0, "baselines": {"constant": {"mse": 3, text: 1}}}
    facts = {"format_version": version, "config_sha256": digest}
    documents = {"run.json": facts, "privacy.json": promise, "result.json": result}
    for name, document in documents.items():
        (path / name).write_text(json.dumps(document), encoding="utf-8")
    return path


EXPORT = ("export", "--to")
CASES = {
    "verify": lambda f, t: ["verify", artifact(f, t)],
    "verify, keys": lambda f, t: ["verify", artifact(f, t, keys=True)],
    "verify, spec": lambda f, t: ["verify", artifact(f, t), "--spec", spec(f, t[::-1])],
    "verify, format": lambda f, t: ["verify", other_format(f, t)],
    "check, github": lambda f, t: [
        *["check", artifact(f, t), training_run(f, t), "--policy", policy(f, t)],
        *["--format", "github"],
    ],
    "diff": lambda f, t: ["diff", artifact(f, t), artifact(f, f"z{t}", name="y.onnx")],
    "report, terminal": lambda f, t: ["report", artifact(f, t)],
    "report, shades": lambda f, t: ["report", many(f, t)],
    "report": lambda f, t: ["report", artifact(f, t), "-o", f / "x.html"],
    "report, run": lambda f, t: [
        *["report", training_run(f, t), "-o", f / "x.html", "--policy", policy(f, t)]
    ],
    "export, coq, insecure": lambda f, t: [
        *[*EXPORT, "coq", artifact(f, t, insecure=True), "-o", f / "x.v"]
    ],
    "export, sql": lambda f, t: [
        *[*EXPORT, "sql", artifact(f, t), "--dialect", "spark", "-o", f / f"{t[:3]}.sql"]
    ],
    "estimate, two groups and files": lambda f, t: [
        *["estimate", artifact(f, t), table(f, t), "--quiet", "--by", f"{t}2", "--by", t, "-v"],
        *["--csv", f / "x.csv", "--parquet", f / "x.parquet"],
    ],
    "randomize": lambda f, t: [
        *["randomize", artifact(f, t), table(f, t), "-o", f / f"{t[:3]}.parquet", "--add", f"{t}3"]
    ],
    "plan, unknown key": lambda f, t: ["plan", spec(f, t, **{t: t})],
    "ledger, labels": lambda f, t: ["ledger", "show", drawn(f, t)],
    "ledger, export": lambda f, t: ["ledger", "export", drawn(f, t), "--csv", f / f"{t[:3]}.csv"],
    "ledger, altered": lambda f, t: ["ledger", "verify", altered_ledger(f, t)],
    "train, unknown word": lambda f, t: ["train", config(f, "name", data={"kind": t})],
    "runs, a page": lambda f, t: ["runs", training_run(f, t), "--html", f / "x.html"],
    "runs, damaged": lambda f, t: ["runs", training_run(f, t, t)],
    "another command": lambda f, t: [t],
}


def other_format(folder, text):
    path = artifact(folder, "b")
    model = onnx.load_from_string(path.read_bytes())
    for prop in model.metadata_props:
        if prop.key == "labeldp.format_version":
            prop.value = text
    path.write_bytes(model.SerializeToString(deterministic=True))
    return path


def many(folder, text):
    """Fifty categories: shades instead of a table."""
    categories = tuple(f"{text}{i}" for i in range(50))
    domain = CategoricalDomain(categories, categories[0])
    prior = {"kind": "uniform", "weights": [1] * 50}
    randomizer = randomized_response(categories, range(50), Fraction(1))
    provenance = Declaration("x", "x", "y", Fraction(1), Fraction(0), prior, "0" * 64, {})
    certificate = stated_certificate(domain, randomizer, "zero_one", provenance).to_json()
    path = folder / "many.onnx"
    path.write_bytes(write_model(domain, randomizer, certificate))
    return path


def altered_ledger(folder, text):
    """A budget of a kind that nobody knows."""
    path = ledger(folder, "b")
    with sqlite3.connect(path) as store:
        triggers = store.execute("select name from sqlite_master where type = 'trigger'").fetchall()
        for (trigger,) in triggers:
            store.execute(f"drop trigger {trigger}")
        store.execute("update entries set kind = ? where number = 1", (text,))
    return path


def run(case, folder, text):
    """(lines, exit code), run inside the folder, so that both twins have the same names."""
    folder.mkdir()
    before = Path.cwd()
    os.chdir(folder)
    try:
        arguments = CASES[case](Path(), text)
        sent, code = on_terminal(*arguments)
    finally:
        os.chdir(before)
    return lines_of(sent), code, folder


@pytest.mark.parametrize("case", CASES)
def test_nothing_that_a_file_says_is_obeyed(case, tmp_path):
    lines, code, folder = run(case, tmp_path / "evil", EVIL)
    twin, twin_code, _ = run(case, tmp_path / "plain", PLAIN)
    assert code == twin_code and code in (0, 1, 2), lines
    assert len(lines) == len(twin), (lines, twin)
    assert not any("Traceback" in line for line in lines)
    for line in lines:
        assert not [c for c in line if unicodedata.category(c)[0] == "C"], line
        assert not {"\u2028", "\u2029"} & set(line)
        assert "\u0301" * 5 not in line
        assert not line.startswith(("x.onnx: verified.\r", "ok     forged")), line
    verdicts = [line for line in lines if line.endswith(" per label.")]
    assert len(verdicts) == len([line for line in twin if line.endswith(" per label.")])
    for page in folder.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        bad = {c for c in text if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029"}
        assert bad <= {"\n", "\t"}, bad
        assert "\u0301" * 5 not in text


@pytest.mark.parametrize(
    "change",
    [
        *({"adjacency": ["a"]}, {"mechanism": {"a": 1}}, {"released": 5}, {"secret": ["a", 5]}),
        *({"not_covered": {"a": 1}}, {"limits": "all"}, {"details": None}, {"statement": 5}),
    ],
    ids=str,
)
def test_words_of_a_statement_that_are_no_text_are_damage(change, tmp_path):
    path = training_run(tmp_path, "b")
    promise = json.loads((path / "privacy.json").read_text(encoding="utf-8"))
    (path / "privacy.json").write_text(json.dumps(promise | change), encoding="utf-8")
    found = CliRunner().invoke(main, ["report", str(path), "-o", str(tmp_path / "x.html")])
    assert found.exit_code == 2, found.exception
    assert found.output == f"labeldp: {path}: a file is missing or damaged\n"
    assert not (tmp_path / "x.html").exists()


def test_no_line_keeps_its_colours(capsys):
    say("a\n\x1b[48;5;16m \x1b[0m")
    assert capsys.readouterr().out == "a��[48;5;16m �[0m\n"


def test_nothing_prints_past_the_door():
    """All text goes through ``cli/command.py``, or is made printable where it is written."""
    folder = Path(__file__).parents[2]
    doors = {"output.py", "schema.py"}
    pages = {"app.py"}  # lines of a log, in JSON
    past = []
    for path in sorted((folder / "labeldp_compile").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        writes = any(
            word in text for word in ("click.echo", " print(", "stderr.write(", "sys.stdout.write")
        )
        if writes and path.name not in doors | pages and "one_line(" not in text:
            past.append(path.name)
    assert not past
