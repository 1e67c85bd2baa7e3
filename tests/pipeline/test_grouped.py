"""From priors by group to one file: what it costs, what it proves, what is refused."""

import os
import signal
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from labeldp_runtime import Randomizer
from labeldp_verify import check_bytes
from labeldp_verify.forms import Groups

from labeldp_compile.build.assembly import assemble
from labeldp_compile.errors import InputError
from labeldp_compile.mechanisms.optimal_unbiased import OptimalUnbiased
from labeldp_compile.spec import parse_spec
from tests.fixtures.priors import public_priors
from tests.fixtures.specs import spec

ROOT = Path(__file__).parents[2]
SIZES = (700, 200, 100, 0)


def weights_of(centre):
    return [1 + int(1000 / (1 + (y - centre) ** 2)) for y in range(20)]


def priors(groups, epsilon, centres=(2, 10, 17, 9)):
    return public_priors(groups, SIZES, list(map(weights_of, centres)), Fraction(epsilon))


def made(mechanism, epsilon="1", groups=("a", "b", "c")):
    stated = parse_spec(spec(labels=20, mechanism=f"{{{mechanism}}}", epsilon=epsilon))
    return assemble(stated, priors(Groups.of(groups), epsilon), "0" * 64)


@pytest.mark.parametrize(
    "mechanism",
    [
        "kind: rr_on_bins",
        "kind: randomized_response",
        "kind: optimal_unbiased",
        "kind: rr_top_k, k: 5",
        "kind: rr_with_prior",
        "kind: debiased_rr",
    ],
)
@pytest.mark.parametrize("epsilon", ["0.5", "3"])
def test_every_mechanism_of_windows(mechanism, epsilon):
    artifact = made(mechanism, epsilon, (0, 1, 2))
    report = check_bytes(artifact.model)
    assert report.ok
    assert report.artifact.lookup == artifact.artifact.lookup
    private = Randomizer(artifact.model)(np.arange(20), groups=np.arange(20) % 5)
    assert len(private) == 20


def test_the_bounds_of_groups_make_one_that_is_nearly_reached():
    certificate = made("kind: optimal_unbiased").certificate
    assert certificate.utility.certified_gap < 1e-8
    assert certificate.utility.largest_bias < 1e-8
    for table in certificate.tables:
        assert table.optimality.over == "unbiased"
        assert table.utility.certified_gap < 1e-8


def test_a_prior_that_a_solver_fails_on_has_a_table_all_the_same(monkeypatch):
    kind = "kind: optimal_unbiased"
    honest = made(kind)
    build = OptimalUnbiased.build

    def failing(self, problem):
        if list(problem.weights) == weights_of(10):
            raise ValueError("the weights do not add up to a randomizer at this ε")
        return build(self, problem)

    monkeypatch.setattr(OptimalUnbiased, "build", failing)
    artifact = made(kind)
    tables = artifact.certificate.tables
    assert check_bytes(artifact.model).ok
    assert tables[1].prior.weights == weights_of(10) and tables[1].optimality is None
    loss = honest.certificate.tables[1].utility.noisy_label_loss
    assert tables[1].utility.noisy_label_loss == pytest.approx(loss, rel=1e-3)
    monkeypatch.setattr(OptimalUnbiased, "build", lambda self, problem: 1 / 0)
    with pytest.raises(InputError, match="division"):
        made(kind)


INTERRUPTED = """
import sys
from labeldp_compile.build import tables
from labeldp_verify.console.interrupts import run
from tests.pipeline.held import HeldWhenRead
from tests.pipeline.test_grouped import made

tables._ALONE_SECONDS, tables._FIRST = -1, 1
tables._of = HeldWhenRead(sys.argv[1])
run("labeldp", lambda: lambda: made("kind: rr_on_bins"))
"""


def test_processes_that_share_the_work_end_with_it_and_say_nothing(tmp_path):
    """^C goes to all of them, as from a terminal."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    line = [sys.executable, "-c", INTERRUPTED, fifo]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
    ) as process:
        reading = os.open(fifo, os.O_RDONLY)
        assert os.read(reading, 1) == b"x"  # a child is there
        os.killpg(process.pid, signal.SIGINT)
        while os.read(reading, 1):  # until nobody is left who could write
            pass
        os.close(reading)
        assert process.wait() == 130
        assert (process.stdout.read(), process.stderr.read()) == ("", "\nlabeldp: interrupted\n")
