"""ε of a person at δ, before an artifact exists: an upper bound of what its integers prove."""

from decimal import Decimal
from fractions import Fraction

from labeldp_compile import compile_spec
from labeldp_compile.build.plan import plan_spec
from labeldp_compile.check.policy import GatePolicy
from labeldp_compile.check.subject import of_artifact, of_plan
from tests.policy.company import SPEC, changed, write


def test_the_plan_is_never_below_the_artifact(tmp_path):
    spec = changed(SPEC, privacy={"epsilon": 0.1, "labels_per_user": 40}, prior={"kind": "uniform"})
    path = write(tmp_path / "visits.yaml", spec)
    rules = GatePolicy(version=1, max_epsilon_person=1, max_delta=Decimal("1e-6"))
    planned = dict(of_plan(plan_spec(path), [], tmp_path, rules).person)
    found = compile_spec(path)
    proved = dict(of_artifact(path, b"", found.artifact, with_use=False).person)
    at = Fraction("1e-6")
    assert planned.keys() == {0, at} and proved[at] <= planned[at] < planned[0] == 4
