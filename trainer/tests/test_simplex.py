"""The probabilities nearest to predictions, and how they move."""

import numpy as np
from labeldp_trainer.interactions.softmax import nearest_probabilities, probabilities_moved
from scipy.optimize import minimize

PREDICTED = np.random.default_rng(0).normal(0.2, 0.6, (40, 5)).astype(np.float32)


def test_no_probabilities_are_nearer():
    found = nearest_probabilities(PREDICTED)
    assert (found >= 0).all()
    assert np.allclose(found.sum(axis=1), 1, atol=1e-6)
    for own, each in zip(found[:9], PREDICTED[:9].astype(float), strict=True):
        best = minimize(
            lambda p, each=each: np.square(p - each).sum(),
            np.full(5, 0.2),
            method="SLSQP",
            bounds=[(0, 1)] * 5,
            constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        )
        assert np.allclose(own, best.x, atol=1e-3)


def test_they_move_as_they_do_for_a_small_change():
    change = np.random.default_rng(1).normal(size=PREDICTED.shape).astype(np.float32)
    moved, step = probabilities_moved(PREDICTED, change), np.float32(1e-3)
    ahead = nearest_probabilities(PREDICTED + step * change)
    assert np.allclose((ahead - nearest_probabilities(PREDICTED)) / step, moved, atol=2e-3)
    assert (moved[nearest_probabilities(PREDICTED) == 0] == 0).all()
