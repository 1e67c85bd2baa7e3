"""The run folder keeps a representation; runs beside it take it; what is damaged is made again."""

import json

import numpy as np
import pytest
from labeldp_trainer import RunFolderError, load_config, train
from labeldp_trainer.representations import representation as store
from labeldp_trainer.representations import restored

from trainer.tests.representations.representation_helpers import IMAGES, PATCHES, write_images

BOTH = (120, 40)  # rows of the parts
FILES = ("facts.json", "learnt.npz", "test.npy", "train.npy")


def run(directory, name, *, resume=False, text=IMAGES, representation=PATCHES):
    path = directory / "train.yaml"
    path.write_text(text % representation, encoding="utf-8")
    learnt = []
    result = train(
        load_config(path),
        directory / "runs" / name,
        resume=resume,
        steps=lambda what, done, total: learnt.append(what),
    )
    return result, bool(learnt)


def kept(directory, name, file):
    return directory / "runs" / name / "representation" / file


def inode(path):
    return path.stat().st_ino


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    directory = tmp_path_factory.mktemp("first")
    write_images(directory)
    return directory, *run(directory, "a")


def test_what_is_kept(first):
    directory, result, learnt = first
    assert learnt
    assert sorted(path.name for path in kept(directory, "a", "x").parent.iterdir()) == list(FILES)
    facts = json.loads((result.folder / "run.json").read_text())
    assert facts["representation"]["rows"] == 120
    assert not facts["representation"]["learnt_from_test"]
    assert result.params["w"].shape == (8, 3)
    representation = restored(result.folder)
    assert representation.width == 8
    with np.load(directory / "test.npz") as archive:
        x = archive["x"].astype(np.float32) / np.float32(255)
    stored = np.load(kept(directory, "a", "test.npy"))
    np.testing.assert_allclose(representation.apply(x), stored, atol=2e-3)


def test_a_run_beside_takes_it(first):
    directory, result, _ = first
    other, learnt = run(directory, "b")
    assert not learnt
    np.testing.assert_array_equal(result.params["w"], other.params["w"])
    for name in FILES:
        assert inode(kept(directory, "a", name)) == inode(kept(directory, "b", name))


def test_other_options_features_and_test_rows_do_not(first):
    directory, _, _ = first
    digests = set()

    def digest(**changed):
        facts = json.loads(kept(directory, "a", "facts.json").read_text())
        options = {k: v for k, v in facts["learnt_from"].items() if k not in ("rows", "raw_width")}
        found = store.digest_of({**options, **changed})
        assert (found == facts["digest"]) == (not changed)
        digests.add(found)

    digest()
    digest(options={"kind": "patches"})
    digest(seed=8)
    digest(features_sha256="0")
    digest(test_features_sha256="0")
    digest(learnt_from_test=True)
    digest(unlabelled=[{"file": "x", "rows": 1, "features_sha256": "0"}])
    assert len(digests) == 7


@pytest.mark.parametrize("name", FILES)
def test_what_is_damaged_is_made_again(first, name, tmp_path):
    source = kept(first[0], "a", "x").parent
    folder = copied(source, tmp_path / "runs" / "a" / "representation")
    digest = json.loads((folder / "facts.json").read_text())["digest"]
    assert store.find(tmp_path / "runs" / "c", digest, BOTH) is not None
    assert store.find(tmp_path / "runs" / "c", "0" * 64, BOTH) is None
    (folder / name).unlink()
    (folder / name).write_bytes((source / name).read_bytes()[:-20])
    assert store.find(tmp_path / "runs" / "c", digest, BOTH) is None
    if name in ("learnt.npz", "facts.json"):
        with pytest.raises(RunFolderError, match="missing or damaged"):
            restored(tmp_path / "runs" / "a")


def test_many_vectors_are_computed_again(first, tmp_path, monkeypatch):
    directory, result, _ = first
    for name in ("train.npz", "test.npz"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    monkeypatch.setattr(store, "_MOST_BYTES", 4 * 8 * sum(BOTH) - 1)
    for name in "ab":
        other, computed = run(tmp_path, name)
        assert computed
        np.testing.assert_array_equal(result.params["w"], other.params["w"])
        assert sorted(path.name for path in kept(tmp_path, name, "x").parent.iterdir()) == [
            "facts.json",
            "learnt.npz",
        ]
    again, _ = run(tmp_path, "b", resume=True)
    np.testing.assert_array_equal(result.params["w"], again.params["w"])


def test_resume(first, tmp_path):
    directory, _, _ = first
    for name in ("train.npz", "test.npz"):
        (tmp_path / name).write_bytes((directory / name).read_bytes())
    text = IMAGES.replace("epochs: 2", "epochs: 1")
    run(tmp_path, "a", text=text)
    again, learnt = run(tmp_path, "a", text=text, resume=True)
    assert not learnt
    vectors = kept(tmp_path, "a", "train.npy")
    whole = vectors.read_bytes()
    vectors.write_bytes(whole[:-3])
    mended, learnt = run(tmp_path, "a", text=text, resume=True)
    assert learnt
    assert vectors.read_bytes() == whole
    np.testing.assert_array_equal(again.params["w"], mended.params["w"])
    facts = tmp_path / "runs" / "a" / "run.json"
    told = json.loads(facts.read_text())
    facts.write_text(json.dumps(told | {"representation_sha256": "0"}))
    with pytest.raises(RunFolderError, match="other vectors of its representation"):
        run(tmp_path, "a", text=text, resume=True)


def copied(source, target):
    target.mkdir(parents=True)
    for file in FILES:
        (target / file).write_bytes((source / file).read_bytes())
    return target


def test_vectors_of_other_rows_are_not_taken(first, tmp_path):
    """350 vectors stood for 400 rows once; neither those beside nor those of the run itself."""
    source = kept(first[0], "a", "x").parent
    train, test = np.load(source / "train.npy"), np.load(source / "test.npy")
    digest = json.loads((source / "facts.json").read_text())["digest"]

    def found(place, rows=BOTH, **changed):
        folder = copied(source, tmp_path / place / "beside" / "representation")
        for file, array in changed.items():
            np.save(folder / f"{file}.npy", array)
        return store.find(tmp_path / place / "new", digest, rows)

    assert found("same", train=train) is not None
    assert found("fewer", train=train[:-10]) is None
    assert found("more", test=np.concatenate([test, test])) is None
    assert found("no test", rows=(120, None)) is None
