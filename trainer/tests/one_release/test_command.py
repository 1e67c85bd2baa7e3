"""``labeldp train`` with one release: what it leaves, verifies, fits again, and keeps."""

import io
import json
import shutil
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from labeldp_trainer.methods import one_release as method_module
from labeldp_trainer.one_release.plan import fitted_release

from labeldp_compile.cli import main
from trainer.tests.noise import nothing_is_drawn
from trainer.tests.one_release.release_helpers import CLASSES, NUMBERS, write_archives

POISSON = NUMBERS.replace("squared", "poisson").replace("[-6, 6]", "[0, 8]")
USERS = CLASSES.replace("1e-5}", "1e-5, user_column: user, max_examples_per_user: 2}")


def labeldp(*arguments, code=0):
    result = CliRunner().invoke(main, ["train", *map(str, arguments)])
    assert result.exit_code == code, (result.output, result.exception)
    assert isinstance(result.exception, SystemExit | None)
    if code == 2:
        lines = [one for one in result.stderr.splitlines() if not one.startswith("representation ")]
        assert result.stdout == "" and lines[0].startswith("labeldp: ")
        assert all(line.isprintable() for line in lines) and "labeldp: " not in lines[1:]
        return result.stderr
    return result.stdout


def files(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Data, configs, and a run of each."""
    directory = tmp_path_factory.mktemp("place")
    write_archives(directory)
    for name, text in (("classes", CLASSES), ("numbers", NUMBERS), ("users", USERS)):
        (directory / f"{name}.yaml").write_text(text, encoding="utf-8")
        labeldp(directory / f"{name}.yaml", "-o", directory / "runs" / name)
    return directory


@pytest.mark.parametrize(
    ("name", "metric"), [("classes", "accuracy"), ("numbers", "mse"), ("users", "accuracy")]
)
def test_a_run_has_a_test_metric_and_none_of_training_labels(place, name, metric):
    folder = place / "runs" / name
    result = json.loads((folder / "result.json").read_text())
    constant = result["baselines"]["constant"][metric]
    better = result["test"][metric] - constant
    assert better > 0.2 if metric == "accuracy" else better < -0.5 * constant
    assert {key.partition("_")[0] for key in result} <= {"format", "test", "rows", "baselines"}
    statement = json.loads((folder / "privacy.json").read_text())
    assert (statement["epsilon"], statement["delta"]) == (2, 1e-5)
    assert statement["details"]["proved_delta"] <= 1e-5
    assert statement["secret"] == ["the true labels"]
    several = "A person with several labels spends ε for each of them." in statement["statement"]
    assert several == (name != "users")
    moves = "all labels of a user together move" if name == "users" else "a label moves"
    assert f"; {moves} it by at most √" in statement["mechanism"]
    assert "Training again" in (folder / "privacy.txt").read_text()
    assert (
        "Training again draws another release and spends (ε = 2, δ = 1e-05) again. Resuming "
        "this run does not. To refit for free: --from-release release.npz."
    ) in statement["statement"]
    assert ("all labels of one user" in statement["adjacency"]) == (name == "users")
    assert not (folder / "metrics.jsonl").exists()


@pytest.mark.parametrize("name", ["classes", "numbers", "users"])
def test_releases_are_verified_from_features_alone(place, tmp_path, name):
    """Whoever verifies needs no label, nor the run."""
    shutil.copy(place / "runs" / name / "release.npz", tmp_path)
    for part in ("train", "test"):
        with np.load(place / f"{part}.npz") as archive:
            np.savez(tmp_path / f"{part}.npz", x=archive["x"], user=archive["user"])
    shutil.copy(place / f"{name}.yaml", tmp_path)
    said = labeldp(tmp_path / f"{name}.yaml", "--verify-release", tmp_path / "release.npz")
    lines = said.splitlines()
    assert len(lines) == 9 and all(line.split()[0] == "ok" for line in lines[:-1])
    assert "verified: its noise gives ε = " in lines[-1] and ", δ = " in lines[-1]
    given = {"release.npz", "train.npz", "test.npz", f"{name}.yaml"}
    assert {path.name for path in tmp_path.iterdir()} == given  # nothing is left behind


def test_a_release_is_fitted_again_bit_by_bit_and_nothing_is_drawn(place, tmp_path, undrawn):
    release = place / "runs" / "classes" / "release.npz"
    with np.load(place / "train.npz") as archive:  # whoever fits it has no training labels
        np.savez(tmp_path / "train.npz", x=archive["x"])
    for name in ("test.npz", "classes.yaml"):
        shutil.copy(place / name, tmp_path)
    labeldp(tmp_path / "classes.yaml", "-o", tmp_path / "run", "--from-release", release)
    before, after = files(place / "runs" / "classes"), files(tmp_path / "run")
    different = {name for name in before if before[name] != after.get(name)}
    assert before.keys() == after.keys()
    stated = {"kept.npz", "privacy.json", "privacy.txt"}  # that it was given
    assert different <= {"encoder.json", *stated}  # where the data lie


def test_that_a_given_release_has_noise_is_declared(place, tmp_path):
    """One whose statistic nobody drew passes all checks."""
    data = (place / "runs" / "classes" / "release.npz").read_bytes()
    with np.load(io.BytesIO(data)) as archive:
        zeros = np.zeros_like(archive["statistic"])
    (tmp_path / "release.npz").write_bytes(tampered(data, statistic=zeros))
    config, folder, words = place / "classes.yaml", tmp_path / "run", "nothing here can prove it"
    said = labeldp(config, "-o", folder, "--from-release", tmp_path / "release.npz")
    lines = [line for line in said.splitlines() if line.startswith("  not proved")]
    assert len(lines) == 1 and words in lines[0]
    assert words in json.loads((folder / "privacy.json").read_text())["statement"]
    before = files(folder)
    assert words in labeldp(config, "-o", folder, "--resume")  # it is kept
    assert files(folder) == before
    assert words not in labeldp(config, "-o", place / "runs" / "classes", "--resume")


def test_a_finished_run_is_resumed_as_it_is(place, undrawn):
    folder = place / "runs" / "numbers"
    before = files(folder)
    labeldp(place / "numbers.yaml", "-o", folder, "--resume")
    assert files(folder) == before
    labeldp(place / "numbers.yaml", "-o", folder, code=2)
    release = folder / "release.npz"
    options = ("-o", folder, "--resume", "--from-release", release)
    assert "remove --from-release" in labeldp(place / "numbers.yaml", *options, code=2)
    assert files(folder) == before


def test_an_error_in_the_fit_leaves_the_release(place, tmp_path, monkeypatch):
    def fails_from(count):
        def fails(release, rows, head):
            if rows.count >= count:
                raise np.linalg.LinAlgError("singular")
            return fitted_release(release, rows, head)

        monkeypatch.setattr(method_module, "fitted_release", fails)
        assert "cannot be fitted" in labeldp(place / "classes.yaml", "-o", folder, code=2)

    folder = tmp_path / "run"
    with nothing_is_drawn():
        fails_from(0)  # noise alone
    assert not folder.exists()
    fails_from(1200)
    monkeypatch.undo()
    data = (folder / "release.npz").read_bytes()
    with nothing_is_drawn():
        labeldp(place / "classes.yaml", "-o", folder, "--resume")
    assert (folder / "release.npz").read_bytes() == data


def test_counts_and_other_heads(place, tmp_path):
    with np.load(place / "train.npz") as archive:
        x, score = archive["x"], archive["number"]
    counts = np.random.default_rng(2).poisson(np.exp(0.3 * score))
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=x, number=counts, y=np.zeros(len(x), int))
    other = CLASSES.replace("1e-5", "1e-5, head: ridge")
    for name, text in (("poisson", POISSON), ("softmax", other)):
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")
        labeldp(tmp_path / f"{name}.yaml", "-o", tmp_path / name)
    result = json.loads((tmp_path / "poisson" / "result.json").read_text())
    assert result["test"]["loss"] < result["baselines"]["constant"]["loss"]
    # a table with one class trains like any other
    result = json.loads((tmp_path / "softmax" / "result.json").read_text())
    assert result["test"]["accuracy"] > 0.95


def tampered(data, **changes):
    """A release with other facts or arrays; a fact that is None is left out."""
    with np.load(io.BytesIO(data)) as archive:
        arrays = {name: archive[name] for name in archive.files}
    facts = json.loads(arrays["facts"].tobytes())
    for name, change in changes.items():
        where = arrays if name in arrays or isinstance(change, np.ndarray) else facts
        where[name] = change(where[name]) if callable(change) else change
    if "facts" not in changes:
        arrays["facts"] = np.frombuffer(json.dumps(facts).encode(), np.uint8)
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def squeezed(data):
    """The same archive, deflated."""
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, old.read(info), zipfile.ZIP_DEFLATED)
    return file.getvalue()


def huge(data):
    """An array whose header promises more than any memory holds."""
    head = np.lib.format.header_data_from_array_1_0(np.zeros((1, 3), np.int64))
    entry = io.BytesIO()
    np.lib.format.write_array_header_1_0(entry, head | {"shape": (1 << 50, 3)})
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for info in old.infolist():
            large = info.filename == "statistic.npy"
            new.writestr(info.filename, entry.getvalue() if large else old.read(info))
    return file.getvalue()


def respelled(data):
    """Releases whose facts are written otherwise."""
    with np.load(io.BytesIO(data)) as archive:
        text = archive["facts"].tobytes().decode()
    others = {
        "a key twice": text.replace('"rows": ', '"rows": 5, "rows": '),
        "the other noise first": text.replace('"noise": ', '"noise": "none", "noise": '),
        "NaN in a list": text.replace("[0, 1, 2]", "[NaN, 1, 2]"),
        "one number for another": text.replace("[0, 1, 2]", "[0, 1e0, 2]"),
        "blanks": text.replace(": ", ":  "),
        "something behind": text + " {}",
    }
    assert text not in others.values()
    facts = {name: np.frombuffer(other.encode(), np.uint8) for name, other in others.items()}
    return {name: tampered(data, facts=other) for name, other in facts.items()}


def less(factor):
    return lambda value: int(value * factor)


RED = "\x1b[31mred\n"
USER = {"column": "u", "max_examples_per_user": 1, "count": 9, "most_rows": 1, "sha256": "0" * 64}
FAILING = {
    "less noise": {"sigma": less(0.999)},
    "longer rows": {"metric": lambda m: m * np.float32(1.5)},
    "smaller rows": {"scale": lambda s: s / 2},
    "longest": {"longest": 10**14, "squared_sensitivity": 2 * 10**14},
    "other rows": {"rows": 299},
    "other digest": {"rows_sha256": "0" * 64},
    "another ε": {"epsilon": "1.5"},
    "another δ": {"delta": "1e-6"},
    "users": {"users": USER | {"column": RED}},
    "a smaller gap": {"gap": lambda g: g / 2 - 0.02 if g > 0.1 else g + 0.02},
    "no expected error": {"expected_error": 0.0},
    "another label": {"label": RED},
    "columns that are not there": {"columns": lambda c: c + 100},
}
DAMAGED = {
    "sensitivity": {"squared_sensitivity": less(0.5)},
    "a hanging ε": {"epsilon": "1e999999999"},
    "ε that is no number": {"epsilon": RED},
    "a huge scale": {"scale": 2.0**32 - 2},
    "no floor": {"floor": 0.0},
    "a negative gap": {"gap": -0.1},
    "no word on noise": {"noise": None},
    "no rows": {"rows": 0},
    "rows as a float": {"rows": 1200.0},
    "more than any number": {"sigma": 10**400},
    "a lattice of truth": {"lattice": {"unit": 1 << 24, "label_steps": True}},
    "an unknown key": {"verified": True},
    "rows of no digest": {"rows_sha256": RED},
    "negative users": {"users": USER | {"max_examples_per_user": -1}},
    "more rows than users may have": {"users": USER | {"most_rows": 2}},
    "classes twice": {"classes": [1, 1, 2]},
    "an array more": {"more": np.zeros(1)},
    "negative noise": {"sigma": -5},
    "another lattice": {"lattice": {"unit": 2, "label_steps": 4096}},
    "floats": {"statistic": lambda s: s.astype(float)},
    "another shape": {"statistic": lambda s: s[:-1]},
    "a metric that is NaN": {"metric": lambda m: m * np.nan},
    "facts that are no JSON": {"facts": np.frombuffer(b"{" + RED.encode(), np.uint8)},
    "deep facts": {"facts": np.frombuffer(b"[" * 100_000, np.uint8)},
    "no range": {"classes": None},
    "unhashable classes": {"classes": [[1], [2], [3]]},
    "another version": {"format_version": "2" + RED},
}


@pytest.mark.parametrize("name", FAILING)
def test_a_release_that_was_changed_is_not_verified_and_not_fitted(place, tmp_path, name):
    path = tmp_path / "release.npz"
    path.write_bytes(
        tampered((place / "runs" / "classes" / "release.npz").read_bytes(), **FAILING[name])
    )
    said = labeldp(place / "classes.yaml", "--verify-release", path, code=1)
    last = said.splitlines()[-1]
    assert "FAILED" in last and "ε" not in last and "\x1b" not in said  # nothing is promised
    failed = said.count("  FAILED ")
    assert f"{failed} check" in last
    folder = tmp_path / "run"
    options = ("-o", folder, "--from-release", path)
    assert "the release fails this check" in labeldp(place / "classes.yaml", *options, code=2)
    assert not folder.exists()


def test_damaged_files_are_one_message(place, tmp_path):
    data = (place / "runs" / "classes" / "release.npz").read_bytes()
    whole = {name: tampered(data, **changes) for name, changes in DAMAGED.items()}
    whole |= {f"cut at {n}": data[:n] for n in (0, 1, 100, len(data) // 2, len(data) - 1)}
    whole |= {"deflated": squeezed(data), "huge": huge(data), "text": b"hello\n"}
    whole["an array"] = b"\x93NUMPY" + data[:10]
    whole |= respelled(data)
    for name, content in whole.items():
        path = tmp_path / "release.npz"
        path.write_bytes(content)
        said = labeldp(place / "classes.yaml", "--verify-release", path, code=2)
        assert str(path) in said, name
    labeldp(place / "classes.yaml", "--verify-release", tmp_path, code=2)
    labeldp(place / "classes.yaml", "--verify-release", tmp_path / "none.npz", code=2)
    labeldp(place / "classes.yaml", "--verify-release", "/dev/null", code=2)


def with_other_vectors(source, folder, factor):
    """A copy of a run folder whose vectors were computed differently."""
    shutil.copytree(source, folder)
    vectors = folder / "representation" / "train.npy"
    rows = np.load(vectors)
    vectors.unlink()
    np.save(vectors, rows * np.float32(factor))


def test_vectors_that_lie_beside_a_release_are_not_believed(place, tmp_path):
    """Another's folders might hold vectors of their own making."""
    path = tmp_path / "release.npz"
    shutil.copy(place / "runs" / "classes" / "release.npz", path)
    for name in ("run", ".release.npz.no-run/other"):
        with_other_vectors(place / "runs" / "classes", tmp_path / name, 2)
    labeldp(place / "classes.yaml", "--verify-release", path)


@pytest.mark.parametrize(("factor", "code"), [(1 + 1e-6, 0), (2, 1)])
def test_vectors_of_another_processor_are_verified_with_those_published(
    place, tmp_path, factor, code
):
    """Its last bits differ; what its map gives for the features here does not."""
    config, runs = tmp_path / "classes.yaml", tmp_path / "runs"
    for name in ("train.npz", "test.npz", config.name):
        shutil.copy(place / name, tmp_path)
    with_other_vectors(place / "runs" / "classes", runs / "before", factor)
    labeldp(config, "-o", runs / "run")  # takes the vectors beside it
    release = runs / "run" / "release.npz"
    said = labeldp(config, "--verify-release", release, code=1)
    assert "FAILED the features give the integer rows" in said
    said = labeldp(config, "--verify-release", release, "--vectors", runs / "run", code=code)
    assert ("FAILED" in said) == bool(code) and "published vectors" in said
    other = config.read_text().replace("method", "representation: {kind: pca, seed: 5}\nmethod")
    (tmp_path / "other.yaml").write_text(other, encoding="utf-8")
    options = ("--verify-release", release, "--vectors", runs / "run")
    said = labeldp(tmp_path / "other.yaml", *options, code=1)
    assert "FAILED the published vectors were made from these features" in said
    labeldp(config, "--verify-release", release, "--vectors", tmp_path, code=2)


@pytest.mark.parametrize(
    ("name", "change", "code"),
    [
        ("mean", None, 2),
        ("projection", lambda a: a.ravel(), 2),
        ("projection", lambda a: a * np.nan, 2),
        ("numeric_mean", None, 1),
    ],
)
def test_a_published_map_of_other_shapes_is_not_verified(place, tmp_path, name, change, code):
    folder = tmp_path / "run"
    shutil.copytree(place / "runs" / "classes", folder)
    learnt = folder / "representation" / "learnt.npz"
    with np.load(learnt) as archive:
        arrays = {key: array for key, array in archive.items() if key != name or change is not None}
    if change is not None:
        arrays[name] = change(arrays[name])
    learnt.unlink()
    np.savez(learnt, **arrays)
    release = place / "runs" / "classes" / "release.npz"
    options = ("--verify-release", release, "--vectors", folder)
    said = labeldp(place / "classes.yaml", *options, code=code)
    assert "is missing or damaged" in said if code == 2 else "FAILED the published vectors" in said
