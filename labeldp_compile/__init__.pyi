"""The public names and where they are; ``__init__.py`` loads each one when it is used."""

from labeldp_verify import Budget as Budget
from labeldp_verify import Report as Report
from labeldp_verify import TooLargeError as TooLargeError
from labeldp_verify import VerificationError as VerificationError

from labeldp_compile.api import choose as choose
from labeldp_compile.api import compile_spec as compile_spec
from labeldp_compile.api import estimate as estimate
from labeldp_compile.api import load_spec as load_spec
from labeldp_compile.api import plan as plan
from labeldp_compile.api import sweep as sweep
from labeldp_compile.api import verify as verify
from labeldp_compile.audits.audit import AuditReport as AuditReport
from labeldp_compile.audits.audit import audit as audit
from labeldp_compile.build.assembly import Compiled as Compiled
from labeldp_compile.build.plan import Plan as Plan
from labeldp_compile.errors import BudgetError as BudgetError
from labeldp_compile.errors import DataError as DataError
from labeldp_compile.errors import InputError as InputError
from labeldp_compile.errors import SpecError as SpecError
from labeldp_compile.estimates.aggregates import Aggregates as Aggregates
from labeldp_compile.ledger.book import OverBudgetError as OverBudgetError
from labeldp_compile.spec import Spec as Spec
from labeldp_compile.sweeps.choice import Choice as Choice
from labeldp_compile.sweeps.sweep import Sweep as Sweep
