"""The loss of private preferences against formulas in numpy and exact expectations over outputs."""

import numpy as np
import pytest
from labeldp_learn import PrivateLabelError
from labeldp_learn.losses import ForwardLogLoss
from labeldp_verify.forms import IntegerDomain
from labeldp_verify.opening import open_artifact

from learn.tests.drawn import FILES, GROUPS, JOINT, NUMBERS, SETS, response, with_table

torch = pytest.importorskip("torch")
from labeldp_learn.torch_losses import PreferenceLoss, TorchBinaryForwardLogLoss  # noqa: E402

BINS = FILES / "plain/rr-on-bins-squared.onnx"
EXTREMES = (-1e4, -30.0, -0.7, 0.0, 1.3, 30.0, 1e4)


def window(labels=5, total=2**20):
    """Grades 1 … 5: the grade or its neighbours with high probability, any other with a low one."""
    apart = np.abs(np.subtract.outer(np.arange(labels), np.arange(labels)))
    chances = np.choose(apart.clip(0, 2), [6, 4, 2])
    counts = (chances * total // chances.sum(axis=1, keepdims=True)).tolist()
    for place, row in enumerate(counts):
        row[place] += total - sum(row)
    values = list(range(1, labels + 1))
    return with_table(open_artifact(NUMBERS), IntegerDomain(1, labels), counts, values)


def even(artifact):
    """Shares of the labels of an artifact, in its order."""
    labels = ForwardLogLoss(artifact).classes
    return {label: i / (len(labels) - 1) for i, label in enumerate(labels)}


PAIR, TIES = response(("second", "first"), rare=4), response(("second", "tie", "first"), rare=5)
GRADES = window()
NAMED = {
    "pair": PAIR, "ties": TIES, "grades": GRADES, "sets": SETS, "joint": JOINT, "groups": GROUPS
}  # fmt: skip


def true_loss(kind, beta, margin, share):
    if kind == "bradley_terry":
        either = np.logaddexp(0, -beta * margin), np.logaddexp(0, beta * margin)
    else:
        either = (margin - 0.5 / beta) ** 2, (margin + 0.5 / beta) ** 2
    return share * either[0] + (1 - share) * either[1]


def values(loss, margin, codes):
    """The loss of each code at one margin, and its slope."""
    found = []
    for code in codes:
        at = torch.tensor([margin], dtype=torch.float64, requires_grad=True)
        value = loss(at, torch.tensor([code]))
        value.backward()
        found.append((value.item(), at.grad.item()))
    return np.array(found).T


def tables(artifact):
    """[k, m] Pr[output | label] of each table, and the codes of its outputs."""
    loss = ForwardLogLoss(artifact)
    for start, stop in zip(loss._ends, loss._ends[1:], strict=False):
        yield loss.chances[:, start:stop], range(start, stop)


@pytest.mark.parametrize("kind", ["bradley_terry", "ipo"])
@pytest.mark.parametrize("name", NAMED)
def test_the_unbiased_loss_is_on_average_that_of_the_true_label(name, kind):
    shares = even(NAMED[name])
    loss = PreferenceLoss(NAMED[name], shares, loss=kind, form="unbiased", beta=0.4)
    for margin in (-3.0, 0.0, 0.8):
        wanted = [true_loss(kind, 0.4, margin, share) for share in shares.values()]
        step = 1e-6
        up, down = (
            [true_loss(kind, 0.4, margin + s * step, share) for share in shares.values()]
            for s in (1, -1)
        )
        for chances, codes in tables(NAMED[name]):
            value, slope = values(loss, margin, codes)
            assert np.allclose(chances @ value, wanted, atol=1e-9)
            assert np.allclose(chances @ slope, np.subtract(up, down) / (2 * step), atol=1e-5)


@pytest.mark.parametrize("name", NAMED)
def test_the_forward_loss_is_the_likelihood_of_the_output(name):
    shares = even(NAMED[name])
    loss = PreferenceLoss(NAMED[name], shares, beta=0.4)
    g = np.array(list(shares.values()))
    apart = np.unique(np.abs(2 * g - 1).round(12))
    offsets = np.linspace(0.5, -1, len(apart) - 1) if len(apart) > 1 else np.zeros(0)
    with torch.no_grad():
        loss.offsets.copy_(torch.tensor(offsets))
    b = np.array([*offsets, 0.0])[np.searchsorted(apart, np.abs(2 * g - 1).round(12))]
    for margin in (-3.0, 0.0, 0.8):
        powers = np.exp(0.4 * margin * g + b.astype(np.float32))
        p = powers / powers.sum()
        for chances, codes in tables(NAMED[name]):
            value, slope = values(loss, margin, codes)
            assert np.allclose(value, -np.log(p @ chances), rtol=1e-6)
            assert abs(p @ chances @ slope) < 1e-9  # least where the model is right


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "options", [{}, {"form": "unbiased"}, {"form": "unbiased", "loss": "ipo", "beta": 0.1}]
)
@pytest.mark.parametrize("name", NAMED)
def test_values_and_slopes_are_finite_far_out(name, options, kind):
    loss = PreferenceLoss(NAMED[name], even(NAMED[name]), **options)
    codes = [code for _, codes in tables(NAMED[name]) for code in codes]
    for margin in EXTREMES:
        at = torch.full((len(codes),), margin, dtype=kind, requires_grad=True)
        value = loss(at, torch.tensor(codes))
        value.backward()
        assert torch.isfinite(value) and torch.isfinite(at.grad).all()
        if not options:  # a likelihood, whose slope is a difference of shares
            assert value >= 0 and (at.grad.abs() * len(codes) <= 1 + 1e-6).all()
            assert all(torch.isfinite(p.grad).all() for p in loss.parameters())


def test_the_unbiased_loss_of_bradley_terry_has_no_minimum_and_that_of_ipo_has_one():
    shares = {"second": 0, "first": 1}
    one = PreferenceLoss(PAIR, shares, form="unbiased")
    far, further = (values(one, margin, [1])[0] for margin in (1e3, 1e4))
    assert further < far < 0 and float(one.values[1]) > 1
    ipo = PreferenceLoss(PAIR, shares, form="unbiased", loss="ipo", beta=0.5)
    best = float(2 * ipo.values[1] - 1)
    assert abs(values(ipo, best, [1])[1]) < 1e-9
    assert values(ipo, 1e4, [1])[0] > 0


@pytest.mark.parametrize("form", ["forward", "unbiased"])
@pytest.mark.parametrize("artifact", [TIES, GRADES])
def test_turning_a_pair_around_with_its_label_changes_nothing(artifact, form):
    loss = PreferenceLoss(artifact, even(artifact), form=form)
    with torch.no_grad():
        for parameter in loss.parameters():
            parameter.copy_(torch.linspace(-1, 0.5, len(parameter)))
    last = len(even(artifact)) - 1
    for code in range(last + 1):
        one, other = values(loss, 0.9, [code]), values(loss, -0.9, [last - code])
        assert np.allclose(one[0], other[0]) and np.allclose(one[1], -other[1])


def test_two_labels_have_the_loss_of_one_score_and_nothing_to_learn():
    loss = PreferenceLoss(PAIR, {"first": 1, "second": 0}, beta=2.0)
    assert [len(parameter) for parameter in loss.parameters()] == [0]
    margins, codes = torch.randn(9, dtype=torch.float64), torch.tensor([0, 1, 1] * 3)
    wanted = TorchBinaryForwardLogLoss(PAIR)(2 * margins, codes)
    assert torch.allclose(loss(margins, codes), wanted)


def test_artifacts_whose_labels_share_outputs_have_a_forward_form_only():
    shares = even(BINS)
    assert torch.isfinite(PreferenceLoss(BINS, shares)(torch.zeros(1), torch.tensor([0])))
    with pytest.raises(PrivateLabelError, match="nearly the same outputs"):
        PreferenceLoss(BINS, shares, form="unbiased")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"shares": {"first": 1}}, "each label of the artifact"),
        ({"shares": {"first": 1, "second": 2}}, "each label of the artifact"),
        ({"shares": {"first": 1, "second": 0, "tie": 0.5}}, "each label of the artifact"),
        ({"shares": {"first": 1, "second": float("nan")}}, "each label of the artifact"),
        ({"loss": "dpo"}, "bradley_terry or ipo"),
        ({"form": "backward"}, "forward or unbiased"),
        ({"beta": 0.0}, "above 0"),
        ({"beta": float("nan")}, "above 0"),
        ({"loss": "ipo"}, "no likelihood"),
    ],
)
def test_options_that_are_refused(change, said):
    with pytest.raises(PrivateLabelError, match=said):
        PreferenceLoss(PAIR, **{"shares": {"first": 1, "second": 0}, **change})


def test_margins_of_another_shape_are_refused():
    loss = PreferenceLoss(PAIR, {"first": 1, "second": 0})
    with pytest.raises(PrivateLabelError, match="must have"):
        loss(torch.zeros(3, 1), torch.zeros(3, dtype=torch.long))


@pytest.mark.parametrize("form", ["forward", "unbiased"])
@pytest.mark.parametrize("code", [-1, 0.5, 2, float("nan")])
def test_what_is_no_code_of_a_private_label_is_refused(form, code):
    """−1 was the last output, and 0.5 was the first."""
    loss = PreferenceLoss(PAIR, {"first": 1, "second": 0}, form=form)
    with pytest.raises(PrivateLabelError, match="whole numbers from 0 to 1"):
        loss(torch.zeros(2), torch.tensor([code, 1]))
