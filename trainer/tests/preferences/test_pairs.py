"""Pairs of answers: what is learned, and that nothing public depends on which one is preferred."""

import hashlib
import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from labeldp_trainer import parse_config
from labeldp_trainer.one_release import rows as lattice
from labeldp_trainer.one_release.release import read_release
from labeldp_trainer.outcomes.predict import open_trained
from labeldp_trainer.training import train

from labeldp_compile.cli import main
from labeldp_compile.tabular.provenance import KEY, read_note

ROWS, P = 1500, 6
SEEN = "first: a, second: b, classes: [a, b]"
HIDDEN = "chosen: good, rejected: bad"


def config(data, more="", train="train.parquet"):
    return f"""
version: 1
name: liked
data: {{kind: pairs, train: {train}, {data}}}
loss: cross_entropy
method: {{kind: one_release, epsilon: 4, delta: 1e-5{more}}}
"""


def answers(seed=0, rows=ROWS):
    random = np.random.default_rng(seed)
    scale = np.arange(1, P + 1) ** -0.5
    a, b = random.normal(size=(2, rows, P)) * scale
    first = random.random(rows) < 1 / (1 + np.exp(-3 * (a - b) @ np.cos(np.arange(P))))
    return a.astype(np.float32), b.astype(np.float32), first


def lists(vectors):
    return pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])


def seen(path, a, b, first, **more):
    label = np.where(first, "a", "b")
    pq.write_table(pa.table({"a": lists(a), "b": lists(b), "preferred": label, **more}), path)


def hidden(path, a, b, first, **more):
    good, bad = np.where(first[:, None], a, b), np.where(first[:, None], b, a)
    names = np.array([[f"a{i}", f"b{i}"] for i in range(len(a))])
    said = {
        "good_text": names[np.arange(len(a)), 1 - first],
        "bad_text": names[np.arange(len(a)), 1 * first],
    }
    table = {"good": lists(good), "bad": lists(bad), **said, **more}
    pq.write_table(pa.table(table), path)


def run(text, folder, name="run", **options):
    return train(parse_config(text, directory=folder), folder / name, **options)


@pytest.fixture
def noise(monkeypatch):
    """The same random bytes for every run."""
    import labeldp_runtime.entropy as source

    def begin():
        random = np.random.default_rng(3)
        monkeypatch.setattr(source, "_of_kernel", random.bytes)

    return begin


def test_turning_pairs_around_with_their_labels_gives_the_same_bits(tmp_path, noise):
    a, b, first = answers()
    turned = np.random.default_rng(1).random(ROWS) < 0.5
    found = []
    for each in (np.zeros(ROWS, bool), turned):
        one, other = np.where(each[:, None], b, a), np.where(each[:, None], a, b)
        seen(tmp_path / "train.parquet", one, other, first ^ each)
        noise()
        result = run(config(SEEN), tmp_path, f"run{len(found)}")
        found.append([result.params["w"], result.params["b"]])
    assert all(np.array_equal(x, y) for x, y in zip(*found, strict=True))
    assert not found[0][1].any()  # no constant


def test_scores_are_learned_and_turned_pairs_have_the_other_probability(tmp_path):
    seen(tmp_path / "train.parquet", *answers(rows=6000))
    seen(tmp_path / "test.parquet", *answers(1))
    result = run(config(SEEN + ", test: test.parquet"), tmp_path)
    a, b, first = answers(1)
    best = (((a - b) @ np.cos(np.arange(P)) > 0) == first).mean()
    assert result.test.model["accuracy"] > best - 0.02
    np.savez(tmp_path / "one.npz", a=a, b=b)
    np.savez(tmp_path / "other.npz", a=b, b=a)
    found = []
    for name in ("one", "other"):
        out = tmp_path / f"{name}.parquet"
        given = ["predict", str(tmp_path / "run"), str(tmp_path / f"{name}.npz"), "-o", str(out)]
        said = CliRunner().invoke(main, [*given, "--probabilities"])
        assert said.exit_code == 0, said.output
        found.append(pq.read_table(out))
    one, other = (np.array(table["probability_a"]) for table in found)
    assert np.allclose(one, 1 - other, atol=1e-6)
    assert ((one > 0.5) == (np.array(found[0]["prediction"]) == "a")).all()


def contents(folder):
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.parametrize("what", ["one row", "all rows", "equal answers"])
def test_which_answer_was_chosen_shows_in_no_byte_but_noisy_ones(tmp_path, what, monkeypatch):
    """The same release, as if noise hid the rest: run folder, relabelled file and messages."""
    a, b, first = answers(rows=300)
    if what == "equal answers":
        a[7] = b[7]
    prompt = {"prompt": [f"p{i}" for i in range(300)]}
    results = []
    for number in range(2):
        folder = tmp_path / f"case{number}"
        folder.mkdir()
        monkeypatch.chdir(folder)
        chosen = first.copy()
        chosen[slice(None) if what == "all rows" else slice(7, 8)] ^= bool(number)
        hidden(folder / "train.parquet", a, b, chosen, **prompt)
        text = config(HIDDEN)
        (folder / "c.yaml").write_text(text, encoding="utf-8")
        if not number:
            train(parse_config(text, directory=folder), tmp_path / "first")
            (tmp_path / "r.npz").write_bytes((tmp_path / "first" / "release.npz").read_bytes())
        train(parse_config(text, directory=folder), folder / "again", release=tmp_path / "r.npz")
        more = ["--relabel", "--pair", "good_text", "bad_text", "--keep", "prompt"]
        said = CliRunner().invoke(
            main, ["predict", "again", "train.parquet", "-o", "o.parquet", *more]
        )
        results.append(
            (contents(folder / "again"), (folder / "o.parquet").read_bytes(), said.output)
        )
        assert said.exit_code == 0, said.output
    assert results[0] == results[1]
    table = pq.read_table(tmp_path / "case0" / "o.parquet")
    assert table.column_names == ["prompt", "good_text", "bad_text", "probability"]
    chosen = np.array([text[0] == "a" for text in table["good_text"].to_pylist()])
    assert (chosen == first).mean() > 0.7
    params = (tmp_path / "case0" / "again" / "params.npz").read_bytes()
    assert json.loads(table.schema.metadata[KEY]) == {
        "format_version": "1.0",
        "columns": {},
        "run": {
            "params_sha256": hashlib.sha256(params).hexdigest(),
            "epsilon": 4.0,
            "delta": 1e-5,
            "unit": "label",
            "max_examples_per_user": None,
        },
    }
    assert read_note(tmp_path / "case0" / "o.parquet", table.schema.metadata) == {}


def test_labels_are_one_and_minus_one_and_ties_are_nothing(tmp_path, monkeypatch):
    a, b, first = answers(rows=200)
    label = np.where(first, 1, 2)
    label[:50] = 0
    table = {"a": lists(a), "b": lists(b), "preferred": label}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    from labeldp_trainer.methods import one_release as method

    monkeypatch.setattr(method, "noisy", lambda exact, sigma: exact)
    monkeypatch.setattr("labeldp_trainer.one_release.plan.noisy", lambda exact, sigma: exact)
    run(config(SEEN.replace("[a, b]", "[1, 2]")), tmp_path)
    release = read_release(tmp_path / "run" / "release.npz")
    assert release.facts.label_range == (-1, 1) and release.columns[0] > 0
    vectors = np.load(tmp_path / "run" / "representation" / "train.npy")
    turned = np.sign(vectors[:, 0]) != np.sign(load_first(tmp_path, a, b))
    chunks = release.weights.chunks(public(vectors))
    q = np.concatenate([chunk.integers for chunk in chunks]).astype(np.int64)
    t = np.where(label == 0, 0, np.where(label == 1, 1, -1)) * np.where(turned, -1, 1)
    assert np.array_equal(release.statistic[:, 0], q.T @ t * lattice.STEPS)


def load_first(folder, a, b):
    """The first component of differences in the order of the file."""
    arrays = np.load(folder / "run" / "representation" / "learnt.npz")
    return (a - b) @ arrays["projection"][:, 0]


def public(vectors):
    return lattice.PublicRows(count=len(vectors), vectors=vectors, spectrum=None, paired=True)


def test_columns_of_numbers_get_splines_and_users_are_protected(tmp_path):
    a, b, _ = answers(rows=3000)
    first = np.abs(a[:, 0]) < np.abs(b[:, 0])  # no linear score finds this
    table = {f"{side}{j}": x[:, j] for side, x in (("a", a), ("b", b)) for j in range(P)}
    table |= {"preferred": np.where(first, "first", "second"), "who": np.arange(3000) // 3}
    pq.write_table(pa.table(table), tmp_path / "train.parquet")
    pq.write_table(pa.table(table), tmp_path / "test.parquet")
    names = {side: ", ".join(f"{side}{j}" for j in range(P)) for side in "ab"}
    data = f"first: [{names['a']}], second: [{names['b']}], test: test.parquet"
    result = run(config(data, ", user_column: who, max_examples_per_user: 3"), tmp_path)
    assert result.test.model["accuracy"] > 0.8
    assert json.loads((tmp_path / "run" / "privacy.json").read_text())["details"]["users"]


@pytest.mark.parametrize(("alike", "least", "most"), [(True, 3, 3.01), (False, 3**0.5, 2.9)])
def test_a_run_says_how_much_shorter_rows_of_a_user_became(tmp_path, alike, least, most):
    """By 3 if three rows are one again and again, and by √3 at least if they are not."""
    a, b, first = answers(rows=900)
    if alike:
        a, b = np.repeat(a[::3], 3, axis=0), np.repeat(b[::3], 3, axis=0)
    seen(tmp_path / "train.parquet", a, b, first, who=np.arange(900) // 3)
    users = ", user_column: who, max_examples_per_user: 3"
    (tmp_path / "c.yaml").write_text(config(SEEN, users), encoding="utf-8")
    said = CliRunner().invoke(
        main, ["train", str(tmp_path / "c.yaml"), "-o", str(tmp_path / "run")]
    )
    assert said.exit_code == 0, said.output
    found = json.loads((tmp_path / "run" / "privacy.json").read_text())["details"]
    found = found["most_shortened_user"]
    assert found["rows"] == 3 and least <= found["factor"] <= most
    shown = float(re.search(r"rows became up to ([0-9.]+) times shorter", said.output)[1])
    assert 0 <= shown - found["factor"] <= 0.01


@pytest.mark.parametrize(("rows", "less"), [(300, "randomized"), (600, "one release has less")])
def test_pairs_are_compared_with_randomized_response(tmp_path, rows, less):
    """By the noise of both in a sum: at ε = 4 and δ = 1e-5, one release needs 62 pairs a column."""
    seen(tmp_path / "train.parquet", *answers(rows=rows))
    note, *others = run(config(SEEN), tmp_path).notes
    facts = read_release(tmp_path / "run" / "release.npz").facts
    release = 2 * facts.sigma / facts.squared_sensitivity**0.5 * P**0.5  # of rows of length 1
    kept = np.random.default_rng(2).random((4000, rows)) < np.exp(4) / (1 + np.exp(4))
    response = np.where(kept, 1, -1).sum(axis=1).std() / np.tanh(2)
    assert (release < response) == (less[0] == "o")
    assert f"{rows:,} pairs and 6 columns: {less}" in note and not others
    assert f"there are {rows / P:,.1f}" in note
    assert 61 < float(re.search(r"from ([0-9.]+) pairs per column", note)[1]) < 66
    who = np.arange(rows) // 3
    seen(tmp_path / "train.parquet", *answers(rows=rows), who=who)
    users = config(SEEN, ", user_column: who, max_examples_per_user: 3")
    assert not run(users, tmp_path, "users").notes


def test_a_release_is_verified_from_the_features(tmp_path):
    hidden(tmp_path / "train.parquet", *answers(rows=300))
    run(config(HIDDEN), tmp_path)
    (tmp_path / "c.yaml").write_text(config(HIDDEN), encoding="utf-8")
    given = ["train", str(tmp_path / "c.yaml"), "--verify-release"]
    said = CliRunner().invoke(main, [*given, str(tmp_path / "run" / "release.npz")])
    assert said.exit_code == 0 and "verified" in said.output, said.output
    trained = open_trained(tmp_path / "run")
    assert trained.loss.task.classes == ("first", "second")


@pytest.mark.parametrize(
    ("data", "more", "said"),
    [
        ("first: a", "", "give first and second with a label, or chosen and rejected"),
        ("first: a, second: b, chosen: c", "", "give first and second"),
        ("first: [a, b], second: [c]", "", "give as many columns"),
        ("first: a, second: a", "", "listed twice"),
        ("chosen: a, rejected: b, label: c", "", "remove label and classes"),
        ("first: a, second: b, classes: [1, 2, 3]", "", "at most 2"),
        ("first: a, second: preferred", "", "listed twice"),
        ("first: a, second: b", ", default: first", "an unknown preference is a tie"),
        ("first: a, second: b", ", goal: coefficients", "pairs are learned by"),
    ],
)
def test_configs_that_are_refused(data, more, said):
    with pytest.raises(Exception, match=said):
        parse_config(config(data, more))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda t: t.set_column(0, "good", [[[1.0]] * 300]), "finite numbers for both"),
        (lambda t: t.set_column(1, "bad", [[None] * 299 + [[1.0] * P]]), "finite numbers for both"),
        (lambda t: t.drop_columns(["bad"]), "no column 'bad'"),
        (lambda t: t.slice(0, 0), "has no rows"),
        (lambda t: t.set_column(0, "good", [["x"] * 300]), "'good' and 'bad': expected finite"),
    ],
)
def test_files_that_are_refused(tmp_path, change, said):
    a, b, first = answers(rows=300)
    hidden(tmp_path / "all.parquet", a, b, first)
    pq.write_table(change(pq.read_table(tmp_path / "all.parquet")), tmp_path / "train.parquet")
    with pytest.raises(Exception, match=said):
        run(config(HIDDEN), tmp_path)
    assert not (tmp_path / "run").exists()


def test_archives_are_relabelled_too(tmp_path):
    a, b, first = answers(rows=300)
    good, bad = np.where(first[:, None], a, b), np.where(first[:, None], b, a)
    texts = np.array([f"good {i}" for i in range(300)]), np.array([f"bad {i}" for i in range(300)])
    np.savez(tmp_path / "train.npz", good=good, bad=bad, good_text=texts[0], bad_text=texts[1])
    run(config(HIDDEN, train="train.npz"), tmp_path)
    given = ["predict", str(tmp_path / "run"), str(tmp_path / "train.npz"), "--relabel"]
    out = tmp_path / "o.csv"
    found = CliRunner().invoke(main, [*given, "-o", str(out), "--pair", "good_text", "bad_text"])
    assert found.exit_code == 0, found.output
    assert 200 < out.read_text().count("\ngood") < 300
    found = CliRunner().invoke(
        main, [*given, "-o", str(tmp_path / "p.csv"), "--pair", "good", "bad"]
    )
    assert found.exit_code == 2 and "is no column" in found.stderr, found.output


def test_labels_of_a_type_that_no_class_has_are_refused(tmp_path):
    a, b, first = answers(rows=300)
    seen(tmp_path / "train.parquet", a, b, first)
    with pytest.raises(Exception, match="declared to hold"):
        run(config(SEEN.replace("[a, b]", "[1, 2]")), tmp_path)


def test_what_would_show_the_order_is_not_written(tmp_path):
    hidden(tmp_path / "train.parquet", *answers(rows=300), prompt=list(range(300)))
    run(config(HIDDEN), tmp_path)
    for more, said in (
        ((), "use --relabel"),
        (("--relabel", "--keep", "good"), "would say which answer is preferred"),
        (
            ("--relabel", "--pair", "good_text", "bad_text", "--keep", "good_text"),
            "would say which",
        ),
        (("--relabel", "--pair", "good_text", "good_text"), "named twice"),
        (("--relabel", "--keep", "Chosen text"), "would say which"),
        (("--relabel", "--pair", "good_text", "prompt"), "named like the two answers"),
        (("--relabel", "--pair", "good_texts", "bad_texts"), "no column 'good_texts'"),
        (("--relabel", "--delimiter", ";"), "--delimiter is for a run on a table"),
    ):
        out = tmp_path / "o.parquet"
        given = ["predict", str(tmp_path / "run"), str(tmp_path / "train.parquet"), "-o", str(out)]
        found = CliRunner().invoke(main, [*given, *more])
        assert found.exit_code == 2 and said in found.stderr and not out.exists(), found.output
