"""Altered files: a changed release is refused, or the change does not affect privacy."""

import copy
import dataclasses
import json

import numpy as np
import pytest
from labeldp_trainer.errors import TrainerError
from labeldp_trainer.interactions.terms import Term
from labeldp_trainer.one_release.rows import Users, squared_sensitivity
from labeldp_trainer.staged_release.check import checks, replayed
from labeldp_trainer.staged_release.draw import LabelSums
from labeldp_trainer.staged_release.plan import MOST_SUMS, histogram_sensitivity
from labeldp_trainer.staged_release.release import ReleaseInStages, read_staged
from labeldp_trainer.staged_release.scale import LabelScale

from trainer.tests.staged_release.staged_helpers import ALL, own_noise, table

ALTERATIONS = 1_000 if ALL else 100
"""Of each of three releases, and as many whose digests were made to fit."""
KINDS = ("classes", "numbers", "users")
NUMERIC = ("sigma", "squared_sensitivity", "longest", "rows")


def some(kind, seed=0):
    owners = np.arange(60) // 3 if kind == "users" else None
    classes = (0, 1, 2) if kind == "classes" else None
    own = table(5, 60, classes=classes, owners=owners, epsilon=4.0, order=2, colours=3)
    x = own.public.features["numeric"][:, 0]
    labels = np.digitize(x, [-0.5, 0.5]).astype(np.int32) if classes else np.clip(x, -1.0, 2.0)
    random = np.random.default_rng(seed)
    return own, own.drawn(labels, add_noise=own_noise(random))


def contents(release):
    """The facts, and all arrays."""
    return json.loads(release.facts.text()), copy.deepcopy(release._arrays())


def written(path, facts, arrays):
    text = json.dumps(facts, ensure_ascii=False).encode()
    np.savez(path, facts=np.frombuffer(text, np.uint8), **arrays)


def refused(own, path):
    """In whose words a file is refused; None if it is accepted."""
    try:
        release = read_staged(path)
    except TrainerError as error:
        return str(error)
    if not release.complete:
        return "incomplete"
    with np.errstate(all="ignore"):
        for check in checks(release, own.method, own.public, own.classes, "y"):
            if not check.ok:
                return check.words
        for check in replayed(release, own.public, own.learn):
            if not check.ok:
                return check.words
    return None


def rehashed(own, release):
    """The release of somebody who lets all digests, measures and scales fit what is in it."""
    return restated(release, lambda number, part: measures(own, release, number, part))


def restated(release, stated, **of_all):
    """The release with what ``stated`` says of a number and its part, and digests that fit."""
    facts = release.facts.model_copy(update={"parts": (), **of_all})
    found = ReleaseInStages(facts, release.columns)
    for number, part in enumerate(release.parts):
        update = {**stated(number, part), "previous_sha256": found.sha256}
        facts = part.facts.model_copy(update=update)
        found = found.with_part(dataclasses.replace(part, facts=facts))
    return found


def measures(own, release, number, part):
    """What is measured on the rows of a part, and the noise that follows."""
    if part.facts.kind != "sums":
        return {}
    question = part.question(release.facts.label_range)
    public = dataclasses.replace(own.public, columns=release.columns)
    found = public.sums(LabelSums(question, LabelScale(0.0), 0)).lengths
    moved = squared_sensitivity(found.longest, classes=own.classes is not None)
    sigma = own.plan.sigma(number, moved)
    return {"rows_sha256": found.sha256, "longest": found.longest} | {
        "squared_sensitivity": moved,
        "sigma": sigma,
    }


def other(random, value):
    """Another value of the same kind, near or far."""
    if isinstance(value, dict):
        key = str(random.choice(sorted(value)))
        return {**value, key: other(random, value[key])}
    if isinstance(value, list):
        return other_list(random, value)
    found = 1
    if isinstance(value, str):
        i = int(random.integers(len(value)))
        found = value[:i] + ("1" if value[i] == "0" else "0") + value[i + 1 :]
    elif isinstance(value, int):
        found = value + int(random.choice([-1, 1, 7, 1 << 20]))
    elif isinstance(value, float):
        found = float(random.choice([np.nextafter(value, 9e99), value * 1.5 + 1, -value - 1]))
    return found


def other_list(random, value):
    """One that is longer, shorter, or has another entry."""
    choice = random.integers(3)
    if not value or choice == 0:
        return [*value, *(value[-1:] or [0])]
    i = int(random.integers(len(value)))
    return [*value[:i], *([other(random, value[i])] if choice == 1 else []), *value[i + 1 :]]


def altered_entry(random, array):
    """One number of it moved, by little or by much; or another shape or type."""
    found = array.copy()
    choice = random.integers(8)
    if choice == 0:
        return found[..., :-1] if found.shape[-1] > 1 else found.astype(np.float64)
    if choice == 1:
        return found.astype(np.int16 if found.dtype.kind == "i" else np.float64)
    flat = found.reshape(-1)
    i = random.integers(flat.size)
    flat[i] += flat.dtype.type(random.choice([-1, 1, 40]))
    return found


def alter(random, facts, arrays, twin):
    """One alteration, in place. Returns its name."""
    parts, choice = facts["parts"], random.integers(6)
    number = int(random.integers(len(parts)))
    if choice == 0:
        key = str(random.choice(sorted(set(facts) - {"parts"})))
        facts[key] = other(random, facts[key])
        return key
    if choice in (1, 2):
        key = str(random.choice(sorted(parts[number])))
        parts[number][key] = other(random, parts[number][key])
        return f"parts.{number}.{key}"
    if choice in (3, 4):
        name = str(random.choice(sorted(arrays)))
        arrays[name] = altered_entry(random, arrays[name])
        return name
    again = int(random.integers(len(parts)))
    kind = str(random.choice(["order", "fewer", "more", "swapped"]))
    if kind == "swapped":  # with the same part of another release of the same labels
        parts[number] = twin[0]["parts"][number]
        for name in list(arrays):
            if name.startswith(f"parts.{number}."):
                arrays[name] = twin[1][name]
        return f"swapped {number}"
    held = {i: {} for i in range(len(parts))}
    for name in list(arrays):
        if name.startswith("parts."):
            _, i, own = name.split(".")
            held[int(i)][own] = arrays.pop(name)
    order = list(range(len(parts)))
    if kind == "fewer":
        del order[number]
    elif kind == "more":
        order.append(number)
    else:
        again = again if again != number else (number + 1) % len(parts)
        order[number], order[again] = order[again], order[number]
        kind = f"order {number} {again}"
    facts["parts"] = [parts[i] for i in order]
    for at, i in enumerate(order):
        arrays.update({f"parts.{at}.{own}": array for own, array in held[i].items()})
    return kind


def same(one, facts, arrays):
    """Nothing was altered after all, such as a type that was so already."""
    known = contents(one)
    return known[0] == facts and all(
        name in arrays and arrays[name].dtype == array.dtype and np.array_equal(arrays[name], array)
        for name, array in known[1].items()
    )


@pytest.fixture(scope="module", params=KINDS)
def pair(request):
    own, release = some(request.param)
    return own, release, some(request.param, seed=1)[1]


def test_a_release_as_it_was_drawn_is_accepted(pair, tmp_path):
    own, release, twin = pair
    for each in (release, twin, rehashed(own, release)):
        (tmp_path / "release.npz").write_bytes(each.to_bytes())
        assert refused(own, tmp_path / "release.npz") is None
    assert rehashed(own, release).sha256 == release.sha256


OF_THE_LAST = ("answer", "weights", "offset", "unit", "base", "clip", "floor")


def test_altered_files_are_refused(pair, tmp_path):
    """All but the last answer, what its labels were compared with up to rounding, and weights or
    a floor that give the same rows: no later part has their digest. The digest of the whole
    release has it.
    """
    own, release, twin = pair
    path, random, last = tmp_path / "release.npz", np.random.default_rng(1), len(release.parts) - 1
    for _ in range(ALTERATIONS):
        facts, arrays = contents(release)
        name = alter(random, facts, arrays, contents(twin))
        if same(release, facts, arrays):
            continue
        written(path, facts, arrays)
        if refused(own, path) is None:
            assert name.startswith(f"parts.{last}."), name
            assert name.rpartition(".")[2] in OF_THE_LAST, name
            assert read_staged(path).sha256 != release.sha256


HARMLESS = ("answer", "values", "weights", "offset", "floor", "shift", "clip", "unit", "base")
"""What may change a little if all digests are made to fit: no privacy rests on it."""


@pytest.mark.slow
def test_alterations_whose_digests_fit_change_no_promise(pair, tmp_path):
    """They are refused, or every part still has the noise that its own rows need."""
    own, release, twin = pair
    path, random = tmp_path / "release.npz", np.random.default_rng(2)
    accepted = []
    for _ in range(ALTERATIONS):
        facts, arrays = contents(release)
        name = alter(random, facts, arrays, contents(twin))
        if same(release, facts, arrays):
            continue
        written(path, facts, arrays)
        try:
            found = rehashed(own, read_staged(path))
        except (TrainerError, ValueError):
            continue
        if found.sha256 == release.sha256:
            continue  # it was a digest or a measure, which is as it was again
        path.write_bytes(found.to_bytes())
        if refused(own, path) is None:
            accepted.append(name)
            kind, *moved = name.split()
            if moved:  # a histogram has nothing but its answer
                kinds = {release.parts[int(number)].facts.kind for number in moved}
                assert kind in ("swapped", "order") and "sums" not in kinds and len(kinds) == 1
            else:
                assert name.rpartition(".")[2] in HARMLESS, name
            assert found.facts.model_copy(update={"parts": ()}) == release.facts.model_copy(
                update={"parts": ()}
            )
            assert [p.facts.sigma for p in found.parts] == [
                own.plan.sigma(i, p.facts.squared_sensitivity) for i, p in enumerate(found.parts)
            ]
    assert any("answer" in name for name in accepted)


def test_other_rows_than_those_that_follow_are_refused(pair, tmp_path):
    """Also if they are measured and have the noise that they need."""
    own, release, _ = pair
    path = tmp_path / "release.npz"
    for number, part in enumerate(release.parts):
        if part.facts.kind != "sums":
            continue
        facts, arrays = contents(release)
        name = f"parts.{number}.weights"
        arrays[name] = arrays[name][::-1].copy()
        written(path, facts, arrays)
        path.write_bytes(rehashed(own, read_staged(path)).to_bytes())
        assert f"part {number + 1} asks what follows" in refused(own, path)
        if own.classes is None:
            facts, arrays = contents(release)
            facts["parts"][number]["clip"] *= 0.7
            written(path, facts, arrays)
            path.write_bytes(rehashed(own, read_staged(path)).to_bytes())
            assert f"part {number + 1} asks what follows" in refused(own, path)


def test_facts_that_fit_one_another_but_not_the_rows_are_refused(pair, tmp_path):
    """Less noise than the plan's, more noise than was drawn, other lengths, and other users."""
    own, release, _ = pair
    path, classes = tmp_path / "release.npz", own.classes is not None

    def words(stated, **of_all):
        path.write_bytes(restated(release, stated, **of_all).to_bytes())
        return refused(own, path)

    for number, part in enumerate(release.parts):
        for sigma in (part.facts.sigma - 1, part.facts.sigma + 1, 2 * part.facts.sigma, 1 << 60):
            update = {number: {"sigma": sigma}}
            assert "the noise that the plan" in words(lambda i, _, u=update: u.get(i, {}))
        if part.facts.kind == "sums":
            for longest in (part.facts.longest - 1, part.facts.longest + 1, 1):
                moved = squared_sensitivity(longest, classes=classes)
                facts = {"longest": longest, "squared_sensitivity": moved}
                update = {number: facts | {"sigma": own.plan.sigma(number, moved)}}
                said = words(lambda i, _, u=update: u.get(i, {}))
                who = (
                    "a replaced label" if own.public.rows.users is None else "all labels of a user"
                )
                assert f"part {number + 1}: {who}" in said
    moved = histogram_sensitivity(2)

    def as_if_of_two(number, part):
        if part.facts.kind == "sums":
            return {}
        return {"squared_sensitivity": moved, "sigma": own.plan.sigma(number, moved)}

    users = Users(column="user", max_examples_per_user=3, count=9, most_rows=2, sha256="0" * 64)
    said = words(as_if_of_two, users=users)
    assert "protected" in said
    assert "are those of the config" in words(lambda i, _: {}, epsilon="1.0")
    assert "classes or the range" in words(
        lambda i, _: {}, **({"classes": (0, 1, 3)} if classes else {"label_range": (-1.0, 2.5)})
    )
    assert "the label column" in words(lambda i, _: {}, label="z")
    assert "the features are" in words(lambda i, _: {}, rows=61)


@pytest.mark.parametrize(("times", "more"), [(50, 0), (50, 3), (1, 5)])
def test_rows_are_as_fine_and_short_ones_as_short_as_they_were(pair, tmp_path, times, more):
    own, release, _ = pair
    path = tmp_path / "release.npz"
    last = max(n for n, part in enumerate(release.parts) if part.facts.kind == "sums")

    def coarser(number, part):
        floor, shift = part.facts.floor, part.facts.shift
        return {"floor": times * floor, "shift": shift + more} if number == last else {}

    path.write_bytes(rehashed(own, restated(release, coarser)).to_bytes())
    assert refused(own, path) is not None


def test_parts_beyond_the_plan_and_facts_of_other_kinds_are_damage(pair, tmp_path):
    """No place of a file is left where anything could be added."""
    own, release, _ = pair
    path = tmp_path / "release.npz"
    extra = release.with_part(release.parts[0])
    path.write_bytes(extra.to_bytes())
    assert "is damaged" in refused(own, path)
    for name, value in (
        ("clip", 1.0),
        ("terms", (Term((0,)),)),
        ("shift", 0),
        ("rows_sha256", "0" * 64),
    ):
        update = {0: {name: value}}
        path.write_bytes(restated(release, lambda i, _, u=update: u.get(i, {})).to_bytes())
        assert "is damaged" in refused(own, path)
    sums = [i for i, part in enumerate(release.parts) if part.facts.kind == "sums"]
    for name in ("shift", "floor", "rows_sha256", "longest", "terms"):
        update = {sums[-1]: {name: None}}
        path.write_bytes(restated(release, lambda i, _, u=update: u.get(i, {})).to_bytes())
        assert "is damaged" in refused(own, path)
    facts, arrays = contents(release)
    for own_name, axis in (("weights", 1), ("answer", 0)):
        name = f"parts.{sums[-1]}.{own_name}"
        arrays[name] = np.repeat(arrays[name], 2 * MOST_SUMS, axis)
    written(path, facts, arrays)  # a small file, and 1,200 times as much to compute
    assert "is damaged" in refused(own, path)
