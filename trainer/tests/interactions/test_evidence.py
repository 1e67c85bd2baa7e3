"""Prior variances of many rows: float32 cannot hold what the constant adds to the sums."""

import numpy as np
from labeldp_trainer.interactions.evidence import (
    NoisySums,
    Outputs,
    likeliest_factors,
    variances_by_evidence,
)

COLUMNS, SUMS = 60, 90


def released(constant):
    """Sums of which the first column of the design explains ``constant`` times a direction."""
    random = np.random.default_rng(0)
    cross = random.normal(size=(SUMS, 1 + COLUMNS))
    cross[:, 0] *= constant
    effects = np.repeat([1.0, 0.1], COLUMNS // 2) * random.normal(size=COLUMNS)
    statistic = cross[:, 1:] @ effects + random.normal(size=SUMS)
    # what the constant explains is no effect
    statistic -= cross[:, 0] * (cross[:, 0] @ statistic) / (cross[:, 0] @ cross[:, 0])
    nothing = np.zeros((SUMS, SUMS))
    return NoisySums(
        statistic[:, None], cross, np.eye(SUMS), nothing, 1.0, Outputs.of_model(np.ones(1))
    )


def test_a_constant_of_many_rows_does_not_change_what_effects_are():
    term_of = np.concatenate([[-1], np.repeat([0, 1], COLUMNS // 2)])
    together, found = np.zeros(2, np.int64), []
    for evidence in map(released, (10.0, 1e3)):
        for searched in (False, True):
            start = np.full(2, 0.3)
            own = variances_by_evidence(evidence, term_of, start, [1, 1], 10.0, searched=searched)
            if searched:
                own = own * likeliest_factors(evidence, term_of, own, together, 10.0)[0]
            found.append(own)
    for few, many in zip(found[:2], found[2:], strict=True):
        assert np.allclose(few, many, rtol=0.02)
        assert few[0] > 10 * few[1]
