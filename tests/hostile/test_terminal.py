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

import click
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from labeldp_runtime import Key
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import CategoricalDomain
from labeldp_verify.graph import write_model

from labeldp_compile.cli import main
from labeldp_compile.cli.output import Painted, say
from labeldp_compile.ledger.book import create_ledger, set_budget
from labeldp_compile.ledger.draw_account import Draw, DrawAccount
from labeldp_compile.ledger.store import open_store
from labeldp_compile.rounding.randomized_response import randomized_response
from labeldp_compile.tabular.provenance import ListedPart, PartsFolder
from tests.fixtures.stated import stated_certificate
from tests.hostile.terminal import lines_of, on_terminal

EVIL = (
    "a\x1b[2J\x1b[H\x1b]0;t\x07\nx.onnx: verified.\r\nok     forged\r\x08\x7f\x85\u202e\u2066\u2028"
    "\u2029\u200b\U000e0041\ue000\x9b31m" + "\u0301" * 40
)
PLAIN = "a" * 60


def signing_key(folder):
    """A key that signs."""
    path, key = folder / "key.pem", Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    path.chmod(0o600)
    return path


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


def person_artifact(folder, text):
    """An artifact whose certificate has the text as the column of persons."""
    provenance = Declaration(
        *("x", "y", text, Fraction(1), Fraction(0), {"kind": "uniform", "weights": [1, 1, 1]}),
        *("0" * 64, {}),
        labels_per_user=2,
        person_column=f"{text}3",
        composes=False,
    )
    domain = CategoricalDomain((f"{text}1", f"{text}2", "b"), "b")
    randomizer = randomized_response([f"{text}1", f"{text}2", "b"], range(3), Fraction(1))
    certificate = stated_certificate(domain, randomizer, "zero_one", provenance).to_json()
    path = folder / "persons.onnx"
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
    DrawAccount(open_store(path), Draw("x", text, *facts, one, one, "", text, "", text)).book(1)
    return path


def key(folder):
    path = folder / "k.key"
    Key.create(path)
    return path


def listed(folder, text):
    """A folder whose manifest has the text wherever it can; its part is missing."""
    path = folder / "parts"
    path.mkdir()
    part = ListedPart("", text, 1, [text], text, text, text, text, 0, text)
    PartsFolder(path, "f" * 32, {}).put("x.parquet", part)
    return path


def config(folder, text, **changes):
    path = folder / "train.yaml"
    path.write_text(yaml.safe_dump({"version": 1, text: 1, **changes}), encoding="utf-8")
    return path


LINEAR = {"kind": "one_release", "epsilon": 1.0, "delta": 1e-5, "label_range": [0, 1]}


def training_run(folder, text, version="1.0", coefficients=None):
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
    if coefficients:
        parts = {"method": LINEAR}
    said = {"version": 1, "name": "n", "data": data, "loss": "squared", **parts}
    given = yaml.safe_dump(said).encode()
    (path / "config.yaml").write_bytes(given)
    digest = hashlib.sha256(given).hexdigest()
    promise = {"method": parts["method"]["kind"], "details": {"unit": text}}
    promise |= {"adjacency": text, "mechanism": text, "statement": text, text: text}
    for key in ("released", "secret", "not_covered", "limits"):
        promise[key] = [text, "b"]
    promise |= {"epsilon": 1.0, "delta": 1e-5} if coefficients else {"epsilon": None, "delta": 0.0}
    result = {"test_mse": 1.0, f"test_{text}": 2.0, "baselines": {"constant": {"mse": 3, text: 1}}}
    facts = {"format_version": version, "config_sha256": digest}
    documents = {"run.json": facts, "privacy.json": promise, "result.json": result}
    if coefficients:
        names = {"feature": text, "category": text, "reference": text}
        numbers = {"estimates": [1.0], "margins": [0.1], text: text}
        each = [{**names, **numbers}, {**names, "why_not": "collinear"}]
        kept = {"format_version": version, "label": text, "rows": 3, "coefficients": each}
        documents["coefficients.json"] = kept | coefficients
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
    "check, unknown key": lambda f, t: ["check", f / "x.onnx", "--policy", policy(f, t, **{t: 1})],
    "diff": lambda f, t: ["diff", artifact(f, t), artifact(f, f"z{t}", name="y.onnx")],
    "plan, policy": lambda f, t: ["plan", spec(f, t), "--policy", policy(f, t)],
    "report, terminal": lambda f, t: ["report", artifact(f, t)],
    "report, shades": lambda f, t: ["report", many(f, t)],
    "report": lambda f, t: ["report", artifact(f, t), "-o", f / "x.html"],
    "report, run": lambda f, t: [
        *["report", training_run(f, t), "-o", f / "x.html", "--policy", policy(f, t)]
    ],
    "export, coq, insecure": lambda f, t: [
        *[*EXPORT, "coq", artifact(f, t, insecure=True), "-o", f / "x.v"]
    ],
    "audit": lambda f, t: ["audit", artifact(f, t), "--samples", "100000", "--no-processes"],
    "report, approve": lambda f, t: [
        *("report", artifact(f, t), "--approve", signing_key(f), "--purpose", "p", "--owner", "o"),
        *("--recipients", "r", "--retention", "until", "--by", "b"),
    ],
    "ledger total, json": lambda f, t: ["ledger", "total", f"{artifact(f, t)}:3", "--json"],
    "export, sql": lambda f, t: [
        *[*EXPORT, "sql", artifact(f, t), "--dialect", "spark", "-o", f / f"{t[:3]}.sql"]
    ],
    "estimate, two groups and files": lambda f, t: [
        *["estimate", artifact(f, t), table(f, t), "--quiet", "--by", f"{t}2", "--by", t, "-v"],
        *["--csv", f / "x.csv", "--parquet", f / "x.parquet"],
    ],
    "export, mlflow": lambda f, t: [
        *[*EXPORT, "mlflow", artifact(f, t, insecure=True), "-o", f / t[:3]]
    ],
    "serve, no such file": lambda f, t: ["serve", f / t[:9], "--unkeyed"],
    "export, portable": lambda f, t: [*EXPORT, "portable", artifact(f, t), "-o", f / t[:3]],
    "evaluate, plot": lambda f, t: [
        *[
            "evaluate",
            artifact(f, t),
            table(f, t),
            table(f, t),
            "--model",
            t,
            "--plot",
            f / "x.svg",
        ],
        "--unnoted",
    ],
    "randomize": lambda f, t: [
        *["randomize", artifact(f, t), table(f, t), "-o", f / f"{t[:3]}.parquet", "--add", f"{t}3"]
    ],
    "randomize, persons beyond": lambda f, t: [
        *["randomize", person_artifact(f, t), table(f, t), "-o", f / "out.parquet"],
        *["--person-column", f"{t}2"],
    ],
    "randomize, append, missing": lambda f, t: [
        *["randomize", artifact(f, t), table(f, t), "-o", listed(f, t), "--append", "--key"],
        *[key(f), "--id-column", "id"],
    ],
    "plan, unknown key": lambda f, t: ["plan", spec(f, t, **{t: t})],
    "compile": lambda f, t: ["compile", spec(f, t), "-o", f / "build"],
    "sweep": lambda f, t: ["sweep", spec(f, t), "--quiet", "--epsilon", "1", "-o", f / "s.html"],
    "init": lambda f, t: ["init", table(f, t), "--column", t, "--values", f"{t},b", "--yes"],
    "ledger, labels": lambda f, t: ["ledger", "show", drawn(f, t)],
    "ledger, export": lambda f, t: ["ledger", "export", drawn(f, t), "--csv", f / f"{t[:3]}.csv"],
    "ledger, altered": lambda f, t: ["ledger", "verify", altered_ledger(f, t)],
    "keygen": lambda f, t: ["keygen", f / t[:3]],
    "train, unknown word": lambda f, t: ["train", config(f, "name", data={"kind": t})],
    "runs, a page": lambda f, t: ["runs", training_run(f, t), "--html", f / "x.html"],
    "runs, damaged": lambda f, t: ["runs", training_run(f, t, t)],
    "runs, coefficients": lambda f, t: [
        *["runs", "--coefficients", training_run(f, t, coefficients={"weighted": True})]
    ],
    "predict, taken": lambda f, t: ["predict", f / "r", f / "t.csv", "-o", training_run(f, t)],
    "explain": lambda f, t: ["explain", training_run(f, t), "-o", f / "o"],
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


@pytest.mark.parametrize("number", ["1e-999999999", "1e-401", "0." + "0" * 500 + "1"])
@pytest.mark.parametrize("command", ["report", "check"])
def test_a_number_of_a_statement_that_takes_long_is_damage(number, command, tmp_path):
    path = training_run(tmp_path, "b")
    text = (path / "privacy.json").read_text(encoding="utf-8")
    changed = text.replace('"delta": 0.0', f'"delta": {number}')
    assert changed != text
    (path / "privacy.json").write_text(changed, encoding="utf-8")
    (tmp_path / "p.yaml").write_text("version: 1\nname: p\nmax_epsilon_label: 1\n")
    more = ["-o", tmp_path / "x.html"] if command == "report" else ["--policy", tmp_path / "p.yaml"]
    found = CliRunner().invoke(main, list(map(str, [command, path, *more])))
    assert "a file is missing or damaged" in found.output, found.exception
    assert found.exit_code == (2 if command == "report" else 1)
    assert not (tmp_path / "x.html").exists()


@pytest.mark.parametrize("groups", [2, 100, 101, 400])
def test_a_root_of_any_length_is_shown(groups, tmp_path):
    path = training_run(tmp_path, "b")
    promise = json.loads((path / "privacy.json").read_text(encoding="utf-8"))
    promise["limits"] = ["a label moves it by at most √9" + ",999" * groups]
    (path / "privacy.json").write_text(json.dumps(promise), encoding="utf-8")
    found = CliRunner().invoke(main, ["report", str(path), "-o", str(tmp_path / "x.html")])
    assert found.exit_code == 0, found.exception
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert ("about" in page.partition("<h3>Limits</h3>")[2]) == (groups < 100)


def test_what_a_statement_leaves_out_is_said(tmp_path):
    path = training_run(tmp_path, "b")
    promise = {"method": "none", "details": {}, "epsilon": None, "delta": 0.0}
    (path / "privacy.json").write_text(json.dumps(promise), encoding="utf-8")
    found = CliRunner().invoke(main, ["report", str(path), "-o", str(tmp_path / "x.html")])
    assert found.exit_code == 0, found.exception
    assert "<dd>not stated</dd>" in (tmp_path / "x.html").read_text(encoding="utf-8")


def test_every_command_is_tried():
    tried = {case.split(",")[0] for case in CASES}
    assert set(main.list_commands(click.Context(main))) <= tried | {"schema", "demo"}


def test_only_our_own_lines_keep_their_colours(capsys):
    colours = "\x1b[48;5;16m \x1b[0m"
    say(f"a\n{colours}", Painted(colours))  # click takes colours away where there is no terminal
    assert capsys.readouterr().out == "a��[48;5;16m �[0m\n \n"


def test_nothing_prints_past_the_door():
    """All text goes through ``cli/output.py``, or is made printable where it is written."""
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
