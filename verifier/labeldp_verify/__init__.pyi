"""The public names and where they are; ``__init__.py`` loads each one when it is used."""

from labeldp_verify.budget import DEFAULT_BUDGET as DEFAULT_BUDGET
from labeldp_verify.budget import OWN_FILES as OWN_FILES
from labeldp_verify.budget import Budget as Budget
from labeldp_verify.budget import TooLargeError as TooLargeError
from labeldp_verify.checks import Check as Check
from labeldp_verify.claims import Certificate as Certificate
from labeldp_verify.console.report import Report as Report
from labeldp_verify.console.report import VerificationError as VerificationError
from labeldp_verify.console.verification import check_bytes as check_bytes
from labeldp_verify.console.verification import check_file as check_file
from labeldp_verify.console.verification import read_artifact as read_artifact
from labeldp_verify.console.verification import verify_file as verify_file
from labeldp_verify.steps import SpecCheck as SpecCheck
