"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_compile.check.policy import GatePolicy as GatePolicy
from labeldp_compile.check.policy import LoadedPolicy as LoadedPolicy
from labeldp_compile.check.policy import load_policy as load_policy
from labeldp_compile.check.policy import policy_schema as policy_schema
from labeldp_compile.check.rules import PolicyFinding as PolicyFinding
from labeldp_compile.check.verdicts import Judged as Judged
from labeldp_compile.check.verdicts import judge as judge
from labeldp_compile.check.verdicts import judge_artifact as judge_artifact
from labeldp_compile.check.verdicts import judge_plan as judge_plan
