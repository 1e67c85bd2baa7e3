"""What ``labeldp audit`` finds, and what it does not accuse.

First the planted violations of ``tests/fixtures/planted.py``, each claimed to be 1-DP: how many of
the audits found it, in the finding that it should, with 10 million samples and with fewer; then
random specs over all forms, domains and mechanisms: the lower bound on ε beside the certified one.
Last, how far the p-values of chi-square can be off where they decide: with one degree of freedom,
all of the deviation in a cell of 100 expected counts, whose exact distribution is Poisson's. Prints
markdown tables.

    python benchmarks/audit.py [AUDITS [SPECS]]
"""

import random
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.special import chdtri
from scipy.stats import poisson

sys.path.insert(0, str(Path(__file__).parents[1]))

from labeldp_verify.opening import open_artifact

from labeldp_compile.audits.audit import (
    CHI_SQUARE_ERROR,
    MAX_LABELS,
    AuditClaim,
    audit_target,
    choose_labels,
)
from labeldp_compile.audits.randomizer import (
    ArtifactTarget,
    FunctionTarget,
    Reference,
    parse_labels,
)
from labeldp_compile.audits.statistics import LEAST_EXPECTED
from tests.fixtures import planted
from tests.fixtures.compiled import compile_text
from tests.fixtures.random_specs import random_spec

SAMPLES = (1_000_000, 10_000_000)
SPEC_SAMPLES = 1_000_000


def planted_audit(name, samples):
    target = FunctionTarget(f"tests.fixtures.planted:{name}")
    claim = AuditClaim(planted.EPSILON, "claimed", planted.K)
    labels = parse_labels(planted.LABELS)
    processes = planted.VIOLATIONS.get(name) == "processes"
    return audit_target(target, labels, claim, samples, processes=processes)


def violations(audits):
    print("| planted | should fail | found, of 1 million | of 10 million | ε ≥ (median) |")
    print("|---|---|---:|---:|---:|")
    for name in (*planted.VIOLATIONS, *planted.FAULTLESS):
        expected, cells, bounds = planted.VIOLATIONS.get(name, "nothing"), [], []
        for samples in SAMPLES:
            found = 0
            for _ in range(audits):
                report = planted_audit(name, samples)
                failed = {finding.name for finding in report.findings if finding.ok is False}
                found += expected in failed if name in planted.VIOLATIONS else bool(failed)
                if samples == SAMPLES[-1]:
                    bounds.append(report.epsilon_lower_bound)
            cells.append(f"{found}/{audits}")
        bound = f"{np.median(bounds):.3f}"
        print(f"| {name} | {expected} | {' | '.join(cells)} | {bound} |", flush=True)


def specs(count):
    above = accused = 0
    shares = []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            path = Path(folder) / "x.onnx"
            path.write_bytes(compile_text(random_spec(random.Random(number))).model)
            decoded = open_artifact(path).table(0)
            labels = choose_labels(decoded.domain.size)
            reference = Reference(decoded, labels)
            bound = decoded.certificate.privacy.epsilon_label_bound
            claim = AuditClaim(bound, "certified", len(labels), reference)
            target = ArtifactTarget(path)
            report = audit_target(target, reference.inputs(), claim, SPEC_SAMPLES, processes=False)
            above += report.epsilon_lower_bound > bound
            accused += not report.ok
            shares.append(report.epsilon_lower_bound / bound if bound else 1.0)
    print(
        "| random specs | bound above the certified ε | accused | bound/certified: median | least |"
    )
    print("|---:|---:|---:|---:|---:|")
    print(f"| {count} | {above} | {accused} | {np.median(shares):.3f} | {min(shares):.3f} |")


def chi_square_errors():
    print("| labels | p-value at which a label is accused | exact, one cell | all labels |")
    print("|---:|---:|---:|---:|")
    for labels in (1, 53, MAX_LABELS):
        nominal = CHI_SQUARE_ERROR / labels
        reach = np.sqrt(chdtri(1, nominal) * LEAST_EXPECTED)
        ends = np.ceil(LEAST_EXPECTED + reach) - 1, np.floor(LEAST_EXPECTED - reach)
        exact = poisson.sf(ends[0], LEAST_EXPECTED) + poisson.cdf(ends[1], LEAST_EXPECTED)
        print(f"| {labels} | {nominal:.1e} | {exact:.1e} | {exact * labels:.1e} |")


def main():
    audits = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    specs(int(sys.argv[2]) if len(sys.argv) > 2 else 200)
    print()
    violations(audits)
    print()
    chi_square_errors()


if __name__ == "__main__":
    main()
