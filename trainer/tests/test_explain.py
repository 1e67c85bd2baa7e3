"""What a model of interactions learned: effects with bands, the page, and what it refuses."""

import shutil
from html.parser import HTMLParser

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.discrete_gaussian import noise as discrete_gaussian
from labeldp_trainer.interactions.columns import entries_of, learn_columns
from labeldp_trainer.interactions.effects import FILE, effects_of, read_effects
from labeldp_trainer.interactions.stages import Learner
from labeldp_trainer.one_release.rows import RowOwners
from labeldp_trainer.outcomes.explained import BAND, open_explained
from labeldp_trainer.staged_release.draw import Draws, LabelColumn, PublicTable
from labeldp_trainer.staged_release.release import ReleaseInStages, StagedFacts

from trainer.tests.command import labeldp
from trainer.tests.noise import words_from
from trainer.tests.staged_release.staged_helpers import own_noise
from trainer.tests.trainer_helpers import CONFIG, INTEGERS, write_artifact, write_tables

pytestmark = pytest.mark.slow

HOSTILE = '<script>alert("x")</script>'
EVIL_COLUMN = '"><img src=x onerror=y>'
TABLE = f"""
version: 1
name: small
data:
  kind: table
  train: t.parquet
  label: LABEL
  numeric: [a, b]
  categorical: [c, '{EVIL_COLUMN}']
loss: LOSS
"""
NUMBERS = TABLE.replace("LABEL", "y").replace("LOSS", "squared")
RUNS = {
    "staged": NUMBERS.replace("loss", "  dates: [day]\nloss")
    + "method: {epsilon: 8, delta: 1e-6, label_range: [-3, 12], interactions: 2}",
    "counts": NUMBERS.replace("squared", "poisson").replace("label: y", "label: n")
    + "method: {kind: staged_release, epsilon: 4, delta: 1e-6, label_range: [0, 12]}",
    "privatized": NUMBERS.replace("label: y", "label: n")
    + "method: {kind: privatized, artifact: numbers.onnx}\nmodel: {kind: interactions, order: 2}",
    "none": TABLE.replace("LABEL", "colour\n  classes: [red, '_g', blue]").replace(
        "LOSS", "cross_entropy"
    )
    + "method: {kind: none}\nmodel: {kind: interactions}",
}


def planted(rows=1200):
    """y is a sum of effects of a and c, and of their interaction; nothing depends on b."""
    random = np.random.default_rng(3)
    a, b = random.uniform(-1, 1, rows), random.normal(50, 10, rows)
    c = random.choice(["u", "v", "w"], rows)
    evil = random.choice([HOSTILE, "\x1b[31mred", "other", "a" * 300], rows)
    y = 4.5 + 0.5 * a + (c == "u") + 2 * a * np.where(c == "v", 1, -1)
    y = y + 0.3 * random.normal(size=rows)
    columns = {"a": a, "b": pa.array(b, mask=random.random(rows) < 0.1), "c": c, "y": y}
    columns[EVIL_COLUMN] = evil
    day = np.datetime64("2024-01-01") + random.integers(0, 365, rows)
    columns["day"] = day.astype("datetime64[D]")
    columns["n"] = np.clip(np.rint(y), 0, 9).astype(int)
    columns["colour"] = np.where(y < 4, "red", np.where(y < 5.5, "_g", "blue"))
    return pa.table(columns)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run of each method on one table."""
    directory = tmp_path_factory.mktemp("place")
    pq.write_table(planted(), directory / "t.parquet")
    write_artifact(directory, INTEGERS.replace("column: y", "column: n"))
    generator = np.random.default_rng(11)

    def words(*shape):
        return generator.integers(0, 2**64, shape, dtype=np.uint64)

    with words_from(words), pytest.MonkeyPatch.context() as patch:
        patch.setattr(discrete_gaussian, "random_words", words)
        for name, text in RUNS.items():
            train(parse_config(text, "t.yaml", directory), directory / name)
    return directory


@pytest.fixture(scope="module")
def pages(place, tmp_path_factory):
    """The page that explains each run, and what the command printed."""
    folder, found = tmp_path_factory.mktemp("pages"), {}
    for name in RUNS:
        output = folder / f"{name}.html"
        found[name] = output, labeldp("explain", place / name, "-o", output)
    return found


class Parsed(HTMLParser):
    """Elements of a page with their attributes, and its text."""

    def __init__(self, path):
        super().__init__()
        self.elements, self.words = [], []
        self.feed(path.read_text())
        self.text = " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words.append(data)


@pytest.mark.parametrize("name", RUNS)
def test_a_page_with_pictures_and_a_short_summary(place, pages, name):
    output, said = pages[name]
    lines = said.splitlines()
    assert len(lines) <= 15
    assert lines[-1] == str(output)
    found, effects = Parsed(output), read_effects(place / name / FILE)
    mains = sum(len(effect.term) == 1 for effect in effects.shown)
    maps = sum(len(effect.outputs) for effect in effects.shown[mains:])
    assert name != "none" or maps == 3 * (len(effects.shown) - mains)  # one for each class
    pictures = [dict(attrs) for tag, attrs in found.elements if tag == "svg"]
    assert len(pictures) == 1 + mains + maps
    ids = [attrs["id"] for _, attrs in found.elements if "id" in attrs]
    assert len(ids) == len(set(ids))


def test_the_effects_are_the_planted_ones(place):
    """In units of the label, on the scale of the column: 2·a·(±1), less what it is on average."""
    found = open_explained(place / "none")
    assert found.unit == "in probability" and found.outputs(found.mains[0])[1] == "Pr[_g]"
    found = open_explained(place / "staged")
    main = next(e for e in found.mains if found.name(e.term) == "c")
    names = dict(zip(found.bins[main.term[0]].names, main.mean[:, 0], strict=True))
    assert names["u"] - names["v"] == pytest.approx(1, abs=0.25)
    pair, bins = found.pairs[0], found.bins[0]
    column_c = found.bins[pair.term[1]].names
    middle = len(bins.edges) // 2
    assert abs(bins.edges[middle]) < 0.2 and bins.edges[0] < -0.8 and bins.edges[-1] > 0.8
    last = pair.mean[len(bins.edges), :, 0]  # a is nearly 1; −1/3 is the mean sign
    assert last[column_c.index("v")] == pytest.approx(2 * (1 + 1 / 3), abs=0.7)
    assert last[column_c.index("u")] == pytest.approx(2 * (-1 + 1 / 3), abs=0.7)
    assert pair.rows.sum() == pytest.approx(1, abs=1e-5)


def test_names_from_files_stay_text(pages):
    output, _ = pages["staged"]
    text = output.read_text()
    assert "<script" not in text and "<img" not in text and "\x1b" not in text
    found = Parsed(output)
    assert HOSTILE in found.text and EVIL_COLUMN in found.text
    assert '"other"' in found.text  # a category of this name is not the bin of other ones
    known = {"data", "details", "figure", "section", "svg", "image", "use", "path", "text"}
    assert known <= {tag for tag, _ in found.elements}
    assert not {"script", "img", "iframe", "object"} & {tag for tag, _ in found.elements}
    assert not any(key.startswith("on") for _, attrs in found.elements for key in attrs)
    links = [attrs.get("href", attrs.get("xlink:href", "")) for _, attrs in found.elements]
    assert all(link.startswith(("#", "data:")) for link in links if link)


def test_other_runs_are_refused(tmp_path):
    write_tables(tmp_path)
    train(parse_config(CONFIG, "t.yaml", tmp_path), tmp_path / "mlp")
    said = labeldp("explain", tmp_path / "mlp", "-o", tmp_path / "o", code=2)
    assert "needs a model of interactions" in said and said.count("\n") == 1
    said = labeldp("explain", tmp_path / "nothing", "-o", tmp_path / "o", code=2)
    assert "does not exist" in said
    assert not (tmp_path / "o").exists()


def test_a_missing_file_and_an_unfinished_run(place, tmp_path):
    shutil.copytree(place / "staged", tmp_path / "run")
    (tmp_path / "run" / FILE).unlink()
    said = labeldp("explain", tmp_path / "run", "-o", tmp_path / "o", code=2)
    assert "train again" in said
    (tmp_path / "run" / "result.json").unlink()
    said = labeldp("explain", tmp_path / "run", "-o", tmp_path / "o", code=2)
    assert "--resume" in said


def test_missing_numbers_and_dates_have_names(place, pages):
    found = open_explained(place / "staged")
    assert {found.columns[c] for c in found.bins} >= {"b", "day: weekday", "day: month"}
    missing = next(effect for effect in found.mains if found.name(effect.term) == "b")
    assert found.bins[missing.term[0]].names[-1] == "missing"
    assert missing.rows[-1] == pytest.approx(0.1, abs=0.03)
    days = next(bins for bins in found.bins.values() if bins.days)
    assert days.column == "day: days since 1970"
    assert days.names[1].startswith("2024-01-") and " … 2024-0" in days.names[1]
    words = Parsed(pages["staged"][0]).text
    assert "missing" in words and "2024-0" in words


class Seeded:
    """A small table of known effects, and a fit to private statistics of its labels.

    The noise has a seed, so that nothing is left to chance.
    """

    def __init__(self, seed, rows=2000):
        self.noise = own_noise(np.random.default_rng(5 + seed))
        random = np.random.default_rng(seed)
        a, b = random.uniform(-1, 1, rows), random.normal(size=rows)
        c = random.integers(1, 5, rows).astype(np.int32)
        features = {"numeric": np.stack([a, b], 1).astype(np.float32), "categorical": c[:, None]}
        sign = np.where(c == 2, 1, -1)
        self.true = {
            (0,): 0.8 * np.sin(3 * a) + 0.6 * a * sign.mean(),
            (1,): 0.5 * np.tanh(b),
            (2,): 0.4 * random.normal(size=4)[c - 1],
            (0, 2): 0.6 * a * (sign - sign.mean()),
        }
        y = sum(self.true.values()) + random.normal(0, 0.5, rows)
        self.columns = tuple(learn_columns(features, (5,)))
        self.codes = np.stack(
            [one.codes(x) for one, x in zip(self.columns, entries_of(features), strict=True)], 1
        )
        self.y = np.clip(y, -4, 4)

    def fit(self, classes=None, epsilon="1.0"):
        ends = (-4.0, 4.0) if classes is None else None
        labels = self.y if classes is None else np.searchsorted([-0.3, 1.6], self.y)
        facts = StagedFacts(
            classes=classes, label_range=ends, epsilon=epsilon, delta="1e-05", label="y",
            rows=len(self.y), users=None, features_sha256="0" * 64,
            in_pairs=tuple(column.in_pairs for column in self.columns),
        )  # fmt: skip
        rows = RowOwners(count=len(self.y))
        release = ReleaseInStages(facts, self.columns)
        table = PublicTable({}, self.columns, self.codes, rows)
        column = LabelColumn(labels)
        draws = Draws(release, table, column, lambda grown: None, add_noise=self.noise)
        return Learner(self.columns, self.codes, draws, rows.relative, 2).learn()

    def means(self, term):
        """The true effect in each cell; NaN in empty ones."""
        shape = [len(self.columns[c].values) for c in term]
        cells = np.ravel_multi_index(tuple(self.codes[:, c] for c in term), shape)
        true = self.true[term] - self.true[term].mean()
        size = int(np.prod(shape))
        with np.errstate(invalid="ignore"):
            means = np.bincount(cells, true, size) / np.bincount(cells, minlength=size)
        return means.reshape(shape)


def test_bands_hold_the_true_effect():
    """95% of cells, on average over tables and noise, if the model is right; here 90% at least."""
    inside = {True: [], False: []}
    for seed in range(10):
        table = Seeded(seed)
        for effect in effects_of(table.fit()).shown:
            if effect.term in table.true:
                true = table.means(effect.term)
                off = np.abs(effect.mean[..., 0] - true) <= BAND * effect.deviation[..., 0]
                inside[len(effect.term) == 1].append(off[np.isfinite(true)])
    assert len(inside[True]) == 30 and len(inside[False]) == 10
    for found in inside.values():
        assert np.concatenate(found).mean() > 0.9


@pytest.mark.parametrize("classes", [None, (0, 1, 2)])
def test_deviations_are_those_of_the_posterior(classes):
    """Against its precision, 1/prior + Xᵀ·(noise)⁻¹·X, for each independent output by itself."""
    fit = Seeded(1).fit(classes)
    effects, evidence, prior = effects_of(fit), fit.found.evidence, fit.found.uncertainty.prior
    outputs = evidence.outputs
    levels = [level for k in range(len(fit.base)) for level, own in outputs.levels() if k in own]
    if classes is None:
        assert np.array_equal(prior[1:], fit.found.variances[fit.terms.term_of[1:]])
    else:
        assert len(set(levels)) > 1  # some classes go together
        assert np.abs(outputs.back - np.eye(3)).max() > 0.1

    def inverse(level):
        noise = evidence.noise + level.label * evidence.spread * evidence.gram
        precision = evidence.cross.T @ np.linalg.solve(noise, evidence.cross)
        precision[np.diag_indices_from(precision)] += 1 / (level.prior * prior)
        return np.linalg.inv(precision)

    of_outputs = [inverse(level) for level in levels]
    for effect in effects.shown:
        names = [term.columns for term in fit.terms.chosen]
        part = np.flatnonzero(fit.terms.term_of == names.index(effect.term))
        for place, output in enumerate(effect.outputs):
            covariance = sum(
                whole[np.ix_(part, part)] * factor**2
                for whole, factor in zip(of_outputs, outputs.back[:, output], strict=True)
            )
            mean, deviation = effect.mean[..., place], effect.deviation[..., place]
            z = basis(fit, fit.terms.chosen[names.index(effect.term)], part)
            assert mean.ravel() == pytest.approx(z @ fit.found.mean[part, output], abs=1e-5)
            expected = np.sqrt(np.einsum("ct,tu,cu->c", z, covariance, z))
            assert deviation.ravel() == pytest.approx(expected, rel=1e-3)


def basis(fit, term, part):
    """[cells, t] centred and scaled values of a term's columns in each cell."""
    first, *others = (fit.terms.columns[c].values.astype(float) for c in term.columns)
    chosen, *functions = term.functions(fit.terms.columns)
    values = first[:, chosen]
    for column, own in zip(others, functions, strict=True):
        values = np.floor(values[:, None, :] * column[None, :, own] / 1024)
        values = values.reshape(-1, len(own))
    return (values - fit.moments.mean[part]) * fit.moments.scale[part]
