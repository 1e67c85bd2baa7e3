"""``labeldp report RUN`` on a run that was really trained: plain words first, no symbol but ε."""

import re

from trainer.tests.command import labeldp
from trainer.tests.trainer_helpers import write_tables

CENTRAL = """
version: 1
name: visits
data: {kind: table, train: train.parquet, label: y, numeric: [a], categorical: [c]}
loss: squared
method: {kind: one_release, epsilon: 1, delta: 1.0e-6, label_range: [0, 9], user_column: id,
         max_examples_per_user: 2}
"""
POLICY = "version: 1\nname: company\nmax_epsilon_label: {most}\nmax_delta: 1e-5\n"
PLAIN = re.compile(r"[\w\s.,:;()ε-]*")


def first_screen(page):
    """All text of the section, without tags."""
    (section,) = re.findall(r'<section id="decision".*?</section>', page, re.DOTALL)
    return " ".join(re.sub(r"<[^>]*>", " ", section).split())


def test_a_person_can_decide_by_the_first_screen_of_a_run(tmp_path):
    write_tables(tmp_path)
    (tmp_path / "train.yaml").write_text(CENTRAL, encoding="utf-8")
    run, page = tmp_path / "run", tmp_path / "page.html"
    labeldp("train", tmp_path / "train.yaml", "-o", run)
    labeldp("report", run, "-o", page)
    said = first_screen(page.read_text("utf-8"))
    assert PLAIN.fullmatch(said) and len(said.split()) <= 120
    assert "Consistent. No signature was checked." in said
    assert "All values of y of each person." in said and "a probability of at most 1 in" in said
    assert "ε is at most 1 for a person" in said and "this folder proves nothing" in said
    for most, says in ((2, "and meets the policy"), (0.5, "It does not meet the policy.")):
        (tmp_path / "policy.yaml").write_text(POLICY.format(most=most), encoding="utf-8")
        labeldp("report", run, "-o", page, "--overwrite", "--policy", tmp_path / "policy.yaml")
        assert says in first_screen(page.read_text("utf-8"))
    stated = run / "privacy.json"
    altered = stated.read_text("utf-8").replace('"epsilon": 1.0', '"epsilon": 0.5', 1)
    assert altered != stated.read_text("utf-8")
    stated.write_text(altered, encoding="utf-8")
    said = labeldp("report", run, "-o", tmp_path / "no.html", code=2)
    assert "is missing or damaged" in said
    assert not (tmp_path / "no.html").exists()
