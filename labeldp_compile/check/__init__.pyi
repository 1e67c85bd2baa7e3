"""The names that this room hands out; ``__init__.py`` loads each one when it is used."""

from labeldp_compile.check.finding import Judged as Judged
from labeldp_compile.check.finding import PolicyFinding as PolicyFinding
from labeldp_compile.check.judging import judge as judge
from labeldp_compile.check.judging import judge_artifact as judge_artifact
from labeldp_compile.check.judging import judge_plan as judge_plan
from labeldp_compile.check.model import GatePolicy as GatePolicy
from labeldp_compile.check.model import LoadedPolicy as LoadedPolicy
from labeldp_compile.check.model import load_policy as load_policy
from labeldp_compile.check.model import policy_schema as policy_schema
