"""From an artifact to the same randomizer as a portable file, which more hosts can run."""

from pathlib import Path

from labeldp_verify import DEFAULT_BUDGET, OWN_FILES, Budget, check_bytes
from labeldp_verify.artifact import Artifact
from labeldp_verify.claims import as_portable
from labeldp_verify.graph import write_model
from labeldp_verify.opening import open_artifact

from labeldp_compile.assembly import Compiled


def portable(artifact: Path, budget: Budget = DEFAULT_BUDGET) -> Compiled:
    """The portable file with the integers and the claims of an artifact, which is verified first.

    It gives the same private label for the same label and words. Nothing is spent.

    Raises InputError if the artifact cannot be read, and VerificationError if it does not verify.

    Example:
        >>> from pathlib import Path
        >>> from labeldp_compile import compile_spec
        >>> from labeldp_compile.tools.port import portable
        >>> path = compile_spec("specs/visits.yaml").write(Path("build"))
        >>> "portable" in portable(path).certificate.parts
        True
    """
    return as_portable_file(open_artifact(artifact, budget))


def as_portable_file(held: Artifact) -> Compiled:
    """The same from a verified artifact."""
    certificate = as_portable(held.certificate, held)
    model = write_model(held.label, held.lookup, certificate.to_json())
    return Compiled(model, check_bytes(model, budget=OWN_FILES).verified())
