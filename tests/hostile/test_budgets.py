"""Budgets: each holds before the work, and is tried at its edge."""

from concurrent.futures import ProcessPoolExecutor
from fractions import Fraction
from multiprocessing import get_context

import onnx
import pytest
from labeldp_runtime import ArtifactError, Policy, PolicyError, Randomizer
from labeldp_runtime import artifact_file as runtime_file
from labeldp_runtime import opened as runtime_opened
from labeldp_runtime.wire import WireError, count_fields
from labeldp_verify import Budget, TooLargeError, check_bytes
from labeldp_verify import budget as budget_module
from labeldp_verify.analysis.lower_bound import _sum_of
from labeldp_verify.claims import Declaration
from labeldp_verify.forms import AdditiveRandomizer, IntegerDomain
from labeldp_verify.graph import write_model
from labeldp_verify.opening import _report
from labeldp_verify.steps import Verification

from benchmarks import hostile
from labeldp_compile import yaml_source
from labeldp_compile.errors import InputError, SpecError
from labeldp_compile.spec import load_spec
from labeldp_compile.spec.agreement import spec_check
from tests.cli.test_cli import labeldp
from tests.fixtures.compiled import INTEGER_SPEC, compile_text
from tests.fixtures.stated import stated_certificate
from tests.hostile.terminal import lines_of, on_terminal
from verifier.tests.files import rebuilt

AMPLE = Budget(1e6, 10**15)
BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 9)
)


@pytest.fixture(scope="module")
def model():
    return compile_text(INTEGER_SPEC).model


def said(*commands):
    """(exit code, output) of each command."""
    results = [labeldp(*command) for command in commands]
    return [(result.exit_code, result.output) for result in results]


def estimate(data):
    """What verification charges for a file in all."""
    with budget_module.spending(AMPLE):
        assert _report(Verification(data, None, None)).ok
        account = budget_module._account.get()
    return account.seconds, account.bytes


def test_the_budget_of_a_verification_at_its_edges(model):
    seconds, size = estimate(model)
    assert check_bytes(model, budget=Budget(seconds * (1 + 1e-9), size)).ok
    for less in (Budget(seconds * (1 - 1e-9), size), Budget(seconds * 2, size - 1)):
        with pytest.raises(TooLargeError, match=r"not checked: .* --budget SECONDS,BYTES"):
            check_bytes(model, budget=less)


@pytest.mark.slow
def test_a_refusal_for_size_is_no_verdict(model, tmp_path):
    path = tmp_path / "x.onnx"
    path.write_bytes(model)
    names = (["verify"], ["report"], ["report", "-o", tmp_path / "x.html"], ["audit"])
    commands = [[*name, path, "--budget", "0.1,1GB"] for name in names]
    commands += [["verify", path, "--budget", "60,8GB"]]
    # In a process of its own: what a worker of the tests holds already counts as memory, too.
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        *refused, (code, _) = pool.submit(said, *commands).result()
    assert code == 0
    for code, output in refused:
        assert code == 2
        assert output.startswith(f"labeldp: {path}: not checked: ")
        assert "verified" not in output and "FAILED" not in output
    assert not (tmp_path / "x.html").exists()
    for wrong in ("60", "60,", "0,1GB", "60,0", "60,8TB", "1e9,8GB", "60, 8GB"):
        assert labeldp("verify", path, "--budget", wrong).exit_code == 2


def test_a_million_labels_and_the_default():
    domain = {"kind": "integer", "min": 0, "max": 999_999, "out_of_domain": "clamp"}

    def million(text):
        model = compile_text(text).model
        stated = {"labels": 10**6, "optimality": None}
        return rebuilt(model, lambda c: (c["label"].update(domain=domain), c.update(stated)))

    # The labels of windows are taken together; those of additive noise are not.
    windows = million(INTEGER_SPEC)
    assert "not one offset for each label" in check_bytes(windows).checks[-1].detail
    with pytest.raises(TooLargeError, match="1,000,000 labels"):
        check_bytes(windows, budget=Budget(5.0))
    with pytest.raises(TooLargeError, match="1,000,000 labels"):
        check_bytes(million(INTEGER_SPEC.replace("rr_on_bins", "laplace")))
    domain["max"] += 1
    detail = check_bytes(million(INTEGER_SPEC)).checks[-1].detail
    assert "more labels than an artifact can have" in detail


def test_fields_of_protobuf_are_counted_as_onnx_reads_them(model):
    def fields(message):
        values = (v for d, v in message.ListFields() for v in (v if d.is_repeated else [v]))
        return sum(1 + (fields(v) if hasattr(v, "ListFields") else 0) for v in values)

    proto = onnx.load_from_string(model)
    assert count_fields(model, 10**6) == fields(proto)
    assert count_fields(model, 10) == 11
    for cut in range(1, len(model), 97):
        try:
            whole = count_fields(model[:cut], 10**6)
        except WireError:
            continue
        assert fields(onnx.ModelProto.FromString(model[:cut])) == whole


def test_empty_messages_never_reach_a_parser(monkeypatch):
    nodes = b"\x0a\x00" * (2 << 20)
    data = b"\x3a" + b"\x80\x80\x80\x02" + nodes  # the graph, 4 MiB
    monkeypatch.setattr(onnx, "ModelProto", lambda: pytest.fail("it was parsed"))
    with pytest.raises(TooLargeError, match="fields or more"):
        check_bytes(data, budget=Budget(20, 400_000_000))


def test_the_runtime_counts_fields_before_onnxruntime_sees_them(model, monkeypatch, limit):
    monkeypatch.setattr(
        runtime_opened.onnxruntime,
        "InferenceSession",
        lambda *_, **__: pytest.fail("onnxruntime saw it"),
    )
    most = count_fields(model, 10**9)
    limit(runtime_file, "_MAX_FIELDS", most - 1)
    with pytest.raises(ArtifactError, match="fields: it is not a labeldp artifact"):
        Randomizer(model)
    limit(runtime_file, "_MAX_FIELDS", most)
    with pytest.raises(pytest.fail.Exception, match="onnxruntime saw it"):
        Randomizer(model)


def test_a_policy_computes_no_number_without_end():
    for text in ("1e999999999", "9" * 10**6, "1/0", None, "-1"):
        with pytest.raises(PolicyError, match="lacks a field that the policy needs"):
            Policy(max_epsilon=1).check_certificate(
                {"name": "x", "exact": {"epsilon_label_bound": text}}, "x"
            )


def test_dimensions_are_not_multiplied_before_they_are_counted(model):
    proto = onnx.load_from_string(model)
    tensor = next(t for t in proto.graph.initializer if t.name == "offsets")
    tensor.dims.extend([2**62] * 50_000)
    detail = check_bytes(proto.SerializeToString(deterministic=True)).checks[-1].detail
    assert "shape of offsets" in detail


def test_fractions_with_little_in_common():
    terms = [Fraction(3, n) for n in range(1, 400)]
    assert _sum_of(terms) == sum(terms, Fraction(0))
    long = [Fraction(1, (1 << 200) + 2 * n + 1) for n in range(20_000)]
    rounded, few = _sum_of(long), sum(long[:500], Fraction(0))
    assert 2**1000 % rounded.denominator == 0
    assert 0 < _sum_of(long[:500]) - few < Fraction(1, 2**990)


@pytest.mark.parametrize("end", ["[" * 100_000, '{"a":' * 100_000, "[" * 900 + "1" * 5000])
def test_certificates_that_nest_or_do_not_end(model, end):
    proto = onnx.load_from_string(model)
    next(p for p in proto.metadata_props if p.key == "labeldp.certificate").value = end
    report = check_bytes(proto.SerializeToString(deterministic=True))
    assert not report.ok and report.checks[-1].name == "certificate"


def test_aliases_make_no_gigabytes(model, tmp_path):
    spec, path = tmp_path / "x.yaml", tmp_path / "x.onnx"
    spec.write_text(BOMB)
    path.write_bytes(model)
    for command in (["plan", spec], ["verify", path, "--spec", spec], ["train", spec]):
        result = labeldp(*command)
        assert result.exit_code == 2 and result.output.count("labeldp: ") == 1
        assert result.output.count("\n") <= 3  # with the line and its caret
        assert "write it out" in result.output


def test_yaml_at_the_edges_of_its_budgets(limit, tmp_path):
    most = yaml_source.MAX_BYTES - len(INTEGER_SPEC) - 2
    path = tmp_path / "x.yaml"
    path.write_text(f"{INTEGER_SPEC}#{'x' * most}\n")
    assert load_spec(path)[0].name == "example"
    path.write_text(f"{INTEGER_SPEC}#{'x' * most}x\n")
    with pytest.raises(SpecError, match=r"at most 4,194,304 bytes: put large data into a file"):
        load_spec(path)
    with pytest.raises(InputError, match="at most 4,194,304 bytes"):
        check_bytes(compile_text(INTEGER_SPEC).model, spec_check(path.read_bytes()))

    limit(yaml_source, "MAX_NODES", 100)
    assert yaml_source.read_yaml(f"[{'x,' * 99}]")
    with pytest.raises(yaml_source.YamlError, match="at most 100 items"):
        yaml_source.read_yaml(f"[{'x,' * 100}]")
    deep = yaml_source.MAX_DEPTH
    assert yaml_source.read_yaml("[" * deep + "x" + "]" * deep)
    with pytest.raises(yaml_source.YamlError, match="nested too deeply"):
        yaml_source.read_yaml("[" * (deep + 1) + "x" + "]" * (deep + 1))
    with pytest.raises(yaml_source.YamlError, match="nested too deeply"):
        yaml_source.read_yaml("[" * 1_000_000)


def test_a_matrix_of_billions_of_entries_is_not_drawn(tmp_path):
    reach, period, words = 10_000, 60_000, 1 << 40

    def even(count):
        quotient, rest = divmod(words, count)
        return tuple([quotient + 1] * rest + [quotient] * (count - rest))

    randomizer = AdditiveRandomizer(
        word_bits=40,
        labels=3,
        spacing=period // 2,
        blocks=even(2 * (reach + 1)),
        shapes=(even(period), even(period)),
        low=period - reach * period,
        high=reach * period,
        origin=0.0,
        unit=1.0,
    )
    domain = IntegerDomain(0, 2)
    prior = {"kind": "uniform", "weights": [1] * 3}
    provenance = Declaration("x", "laplace", "y", Fraction(9), Fraction(0), prior, "0" * 64, {})
    certificate = stated_certificate(domain, randomizer, "squared", provenance).to_json()
    path = tmp_path / "wide.onnx"
    path.write_bytes(write_model(domain, randomizer, certificate))
    sent, code = on_terminal("report", path, memory=8 << 30)
    assert code == 0
    assert any("1,199,940,001 outputs are too many to draw" in line for line in lines_of(sent))


def test_a_sample_of_hostile_files(tmp_path):
    honest = hostile.small_file()
    for name in hostile.GENERATORS.keys() - {"users", "tables", "additive"}:  # a second each
        size = 100_000 if name in hostile.CHEAP else 5_000
        file = tmp_path / "x.onnx"
        file.write_bytes(hostile.make(name, 7, honest, size))
        wrong, *_ = hostile.verdict(file, tmp_path / "said")
        assert wrong is None, (name, wrong)
