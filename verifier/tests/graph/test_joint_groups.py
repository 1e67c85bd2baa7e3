"""Labels of several columns with a table for each group, word by word."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from labeldp_verify import check_bytes
from labeldp_verify.analysis.any_form import ColumnLoss
from labeldp_verify.forms import (
    CategoricalDomain,
    GroupedWindows,
    Groups,
    IntegerDomain,
    JointDomain,
    WindowRandomizer,
)
from labeldp_verify.forms.randomizers import Segment

from verifier.tests.files import all_words, file_of, session_of
from verifier.tests.integers import plain_counts

LABEL = JointDomain.of([IntegerDomain(0, 1), CategoricalDomain(("a", "b"), "a")])
BITS = 9


def window(first: int) -> WindowRandomizer:
    """Four labels, each with its own output in the window behind a common base."""
    width = 2**BITS - 4 * first
    extra = tuple(Segment(width, i) for i in range(4))
    offsets = tuple(width * i for i in range(4))
    return WindowRandomizer(BITS, (first,) * 4, extra, offsets, (0, 1, 2, 3))


RANDOMIZER = GroupedWindows(Groups.of(("x", "y"), "g"), (window(60), window(90), window(100)))
LOSSES = [ColumnLoss("absolute", Fraction(1)), ColumnLoss("zero_one", Fraction(5, 2))]
COLUMNS = ("count", "kind")


@pytest.mark.parametrize(("loss", "losses"), [("zero_one", None), ("sum", LOSSES)])
def test_every_word_of_every_label_in_every_group(loss, losses):
    model = file_of(LABEL, RANDOMIZER, 3, loss, columns=COLUMNS, losses=losses)
    report = check_bytes(model).require()
    assert report.artifact.lookup == RANDOMIZER and report.artifact.label == LABEL
    session, words = session_of(model), all_words(BITS)
    for group, table in (("x", 0), ("y", 1), ("", 2), ("else", 2)):
        for row in range(4):
            count, kind = LABEL.combination(row)
            feed = {
                "label_1": np.full(len(words), int(count), np.int64),
                "label_2": np.full(len(words), kind, object),
                "group": np.full(len(words), group, object),
                "entropy": words,
            }
            got = Counter(zip(*(part.tolist() for part in session.run(None, feed)), strict=True))
            wanted = plain_counts(RANDOMIZER.windows[table], row)
            assert got == {LABEL.combination(o): n for o, n in wanted.items() if n}
