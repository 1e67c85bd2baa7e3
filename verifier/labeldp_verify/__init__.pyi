"""The public names and where they are; ``__init__.py`` loads each one when it is used."""

from labeldp_verify.artifact import Artifact as Artifact
from labeldp_verify.artifact import Table as Table
from labeldp_verify.budget import DEFAULT_BUDGET as DEFAULT_BUDGET
from labeldp_verify.budget import OWN_FILES as OWN_FILES
from labeldp_verify.budget import Budget as Budget
from labeldp_verify.budget import TooLargeError as TooLargeError
from labeldp_verify.claims import Certificate as Certificate
from labeldp_verify.console.report import Report as Report
from labeldp_verify.console.report import VerificationError as VerificationError
from labeldp_verify.errors import Check as Check
from labeldp_verify.errors import InputError as InputError
from labeldp_verify.forms import AdditiveRandomizer as AdditiveRandomizer
from labeldp_verify.forms import TableRandomizer as TableRandomizer
from labeldp_verify.forms import WindowRandomizer as WindowRandomizer
from labeldp_verify.opening import check_bytes as check_bytes
from labeldp_verify.opening import check_file as check_file
from labeldp_verify.opening import read_artifact as read_artifact
from labeldp_verify.opening import verify_file as verify_file
from labeldp_verify.signature import Signed as Signed
from labeldp_verify.signature import read_signed_beside as read_signed_beside
from labeldp_verify.steps import SpecCheck as SpecCheck
