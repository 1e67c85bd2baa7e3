"""How long it may take is said before a representation of images is learned, and not otherwise."""

import pytest
from labeldp_trainer import parse_config, train
from labeldp_trainer.representation import build as forecasts
from labeldp_trainer.representation.build import operations

from trainer.tests.representation.representation_helpers import (
    IMAGES,
    PATCHES,
    loaded,
    write_images,
)

GRAPH = "{kind: graph, of: [patches, scattering]}"
JOINED = f"{{kind: joined, of: [patches, {GRAPH}]}}"


def config(text):
    return parse_config(IMAGES % text).config.representation


def test_it_is_announced_before_learning_and_not_again(tmp_path, monkeypatch):
    monkeypatch.setattr(forecasts, "LEAST", 0.0)
    write_images(tmp_path)
    told = []
    for run in ("a", "b"):  # the second takes what the first has kept
        train(
            loaded(tmp_path, PATCHES),
            tmp_path / run,
            announce=told.append,
            steps=lambda what, done, total: told.append("step"),
        )
    assert [words for words in told if words != "step"] == told[:1]
    assert "160 images" in told[0] and "estimated" in told[0] and " to " in told[0]


def test_more_rows_and_pixels_take_longer_and_parts_count_once():
    for kind in ("{kind: patches, components: all}", "{kind: scattering}", GRAPH, JOINED):
        small = operations(config(kind), (28, 28, 1), 5000, 6000)
        assert operations(config(kind), (28, 28, 1), 50000, 60000) > 2 * small
        assert operations(config(kind), (32, 32, 3), 5000, 6000) > small
    whole, graph = (operations(config(k), (28, 28, 1), 5000, 6000) for k in (JOINED, GRAPH))
    assert whole == pytest.approx(graph)
