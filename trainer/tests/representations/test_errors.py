"""Bad input: one message, before anything is learnt."""

import numpy as np
import pytest
from labeldp_trainer import ConfigError, InputError

from trainer.tests.representations.representation_helpers import (
    PATCHES,
    vectors,
    write_images,
)


@pytest.mark.parametrize(
    ("representation", "expected"),
    [
        ("{kind: patches, size: 7}", "representation.size: 7 is more than a side of the images"),
        ("{kind: file, train: short.npz, test: test.npz}", "with a row for each row of the data"),
        ("{kind: file, train: nan.npz, test: test.npz}", "NaN, infinite or too large for float32"),
    ],
)
def test_data_of_images(tmp_path, representation, expected):
    write_images(tmp_path)
    np.savez(tmp_path / "short.npz", embeddings=np.zeros((119, 2)))
    np.savez(tmp_path / "nan.npz", embeddings=np.full((120, 2), np.nan))
    with pytest.raises(InputError) as error:
        vectors(tmp_path, representation)
    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("representation", "expected"),
    [(PATCHES, "no image has any contrast"), ("{kind: pca}", "nothing is left")],
)
def test_images_without_anything(tmp_path, representation, expected):
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=np.ones((60, 6, 6, 1)), y=np.zeros(60, int))
    with pytest.raises(ConfigError, match=expected):
        vectors(tmp_path, representation)
