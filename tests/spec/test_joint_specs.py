"""Labels of several columns in a spec: what is accepted, what is refused, and in which words."""

import pytest

from labeldp_compile.errors import SpecError
from labeldp_compile.mechanisms import KINDS, mechanism_class
from labeldp_compile.spec import parse_spec
from labeldp_compile.spec.agreement import spec_disagreements
from tests.fixtures.compiled import compile_text, joint_spec

TAKE_SEVERAL = {"randomized_response", "rr_top_k", "rr_with_prior", "subset_selection"}
OPTIONS = {"rr_top_k": ", k: 3"}


def refused(text):
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    return "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])


def mechanism(kind):
    return f"{{kind: {kind}{OPTIONS.get(kind, '')}}}"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", ["sum", "zero_one"])
def test_mechanisms_that_need_an_order_say_what_to_take_instead(kind, loss):
    text = joint_spec(mechanism(kind), 0.5, loss=loss)
    if kind in TAKE_SEVERAL and not (kind == "subset_selection" and loss == "sum"):
        assert mechanism_class(kind).joins
        assert compile_text(text).certificate.labels == 24
    elif kind in TAKE_SEVERAL:
        assert "use loss: zero_one" in refused(text)
    else:
        message = refused(text)
        assert "is for labels of one column: for several columns use randomized_response" in message
        assert "errors" not in message  # one cause, one error


@pytest.mark.parametrize(
    ("goal", "loss", "epsilon", "kind"),
    [
        ("training", "zero_one", 0.5, "subset_selection"),
        ("training", "zero_one", 8, "randomized_response"),
        ("training", "sum", 0.5, "randomized_response"),
        ("labels", "zero_one", 1, "rr_with_prior"),
        ("labels", "sum", 1, "rr_with_prior"),
    ],
)
def test_auto_chooses_among_those_that_need_no_order(goal, loss, epsilon, kind):
    text = joint_spec("{kind: auto}", epsilon, loss=loss) + f"goal: {goal}\n"
    assert parse_spec(text).named_mechanism.kind == kind


ONE = "    - column: y\n      domain: {kind: integer, min: 0, max: 3}\n      loss: squared\n"
CHANGES = {
    "the loss of one column": (
        ("loss: sum", "loss: squared"),
        "the loss of a joint label must be zero_one (1 if any column differs) or sum",
    ),
    "squared categories": (("loss: zero_one", "loss: squared"), "for categories use zero_one"),
    "a column twice": (("column: value", "column: sold"), "a column is listed twice"),
    "a weight of nothing": (("weight: 2.5", "weight: 0"), "greater than 0"),
    "a poisson column": (("loss: absolute", "loss: poisson"), "poisson loss is not for a column"),
    "a misspelt key": (("weight: 2.5", "wieght: 2.5"), "did you mean 'weight'?"),
    "no default": (("out_of_domain: {default: -3}", ""), "categories cannot be clamped"),
    "too many": (("max: 2}", "max: 399998}"), "the columns combine to 2,400,000 labels"),
    "groups": (
        ("prior: {kind: uniform}", "prior: {kind: private, data: x.csv, rows: 5}\n"
         "groups: {column: value, values: [1, 2]}"),
        "the label cannot be its own group",
    ),
    "one column": (
        (joint_spec().split("columns:\n")[1].split("loss: sum")[0], ONE),
        "for one column write label: {column: NAME, domain: {…}}",
    ),
    "both ways": (("label:\n", "label:\n  column: y\n"), "column: unknown key"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_one_clear_error(name):
    (old, new), message = CHANGES[name]
    text = joint_spec()
    assert old in text
    assert message in refused(text.replace(old, new))


def test_a_real_column_needs_a_loss_that_grows_and_rounds_to_the_nearest():
    text = joint_spec(real=True).replace("loss: squared", "loss: zero_one")
    assert "the zero_one loss is not for real labels" in refused(text)
    # Of the whole label it asks whether combinations of grid points are.
    assert compile_text(joint_spec(loss="zero_one", real=True)).certificate.labels == 72
    text = joint_spec(real=True).replace("points: 3}", "points: 3, rounding: unbiased}")
    assert "rounded to the nearest point" in refused(text)


def test_the_file_is_held_against_the_spec():
    text = joint_spec(prior="{kind: uniform}")
    certificate = compile_text(text).certificate
    digest = "compiled from another spec, or another version of it (the digest differs)"
    assert spec_disagreements(text.encode(), certificate) == [digest]
    for old, new, key in [
        ("column: value", "column: worth", "label.columns.1.column"),
        ("max: 2}", "max: 3}", "label.columns.1.domain.max"),
        ("[7, -3]", "[-3, 7]", "label.columns.2.domain.values"),
        ("{default: -3}", "{default: 7}", "label.columns.2.out_of_domain"),
        ("loss: absolute", "loss: squared", "label.columns.1.loss"),
        ("weight: 2.5", "weight: 2", "label.columns.1.weight"),
    ]:
        found = spec_disagreements(text.replace(old, new).encode(), certificate)
        assert [line for line in found if line.startswith(key)], key
