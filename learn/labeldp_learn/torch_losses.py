"""Losses of private labels as modules of PyTorch, which this file imports: install it yourself.

Each takes scores and the codes of private labels (``PrivateLabels.codes``), and returns the mean
loss of a batch. Automatic differentiation finds gradients, so no second derivative is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch.nn import Module, Parameter
from torch.nn.functional import log_softmax, logsigmoid, softplus

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.losses import BinaryForwardLogLoss, ForwardLogLoss
from labeldp_learn.private_labels import Source, opened
from labeldp_learn.private_rows import PrivateRows


class TorchForwardLogLoss(Module):  # type: ignore[misc]
    """The forward-corrected log loss for scores [b, k] and codes [b] of private labels."""

    def __init__(self, artifact: Source) -> None:
        """As ``ForwardLogLoss``."""
        super().__init__()
        self.register_buffer("log_chances", _logs(ForwardLogLoss(artifact)))

    def forward(self, scores: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """The mean of −ln Pr[the private label]. Raises PrivateLabelError for other shapes."""
        _require_rows(scores, codes, self.log_chances.shape[1:])
        likely = _row_of_each(self.log_chances, codes).to(scores.dtype)
        return -torch.logsumexp(log_softmax(scores, dim=1) + likely, dim=1).mean()


class TorchBinaryForwardLogLoss(Module):  # type: ignore[misc]
    """The loss for two labels and scores [b], the log odds of the second label."""

    def __init__(self, artifact: Source) -> None:
        """As ``BinaryForwardLogLoss``."""
        super().__init__()
        self.register_buffer("log_chances", _logs(BinaryForwardLogLoss(artifact)))

    def forward(self, scores: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """The mean of −ln Pr[the private label]. Raises PrivateLabelError for other shapes."""
        _require_rows(scores, codes)
        likely = _row_of_each(self.log_chances, codes).to(scores.dtype)
        both = torch.stack([logsigmoid(-scores), logsigmoid(scores)], dim=1)
        return -torch.logsumexp(both + likely, dim=1).mean()


class PreferenceLoss(Module):  # type: ignore[misc]
    """The loss of Bradley–Terry, DPO or IPO for margins [b] and codes [b] of private preferences.

    A margin m is the reward of the first answer minus that of the second. For DPO and IPO it is the
    difference of log π − log π_ref. The code is that of ``PrivateLabels.codes``. A label counts as
    a share g in [0, 1] of a preference for the first answer: 1/2 is a tie, and five grades can be
    0, 1/4, 1/2, 3/4 and 1. With v(o) the unbiased estimate of g from an output o:

    * ``bradley_terry`` (1952), with s = β·m: ln(1 + eˢ) − g·s. DPO is this loss of its margins
      (Rafailov et al. 2023).
    * ``ipo`` (Azar et al. 2023): g·(m − c)² + (1 − g)·(m + c)² with c = 1/(2β).
    * ``unbiased``: v(o) in place of g. Both losses are linear in g, so given the true label, the
      expectation is its loss. v can be below 0 or above 1. Then the loss of Bradley–Terry falls
      without limit as the margin grows, and a model that can separate single rows diverges:
      regularize it, or stop early. The slope σ(s) − v stays finite. IPO's loss is a parabola and
      has a minimum for every output.
    * ``forward``: −ln Pr[o] under Pr[label] ∝ exp(g·s + b), which never falls below 0. With two
      labels this is Bradley–Terry; with ties it is Davidson's model (1970), and with grades the
      adjacent-category model (Agresti 1992). ``offsets`` are the b of ties and weaker grades,
      relative to the strongest; give them to the optimizer to learn them. They start at 0.

    Args:
        artifact: a path, or an Artifact of ``labeldp_verify``.
        shares: the g of each label.
        loss: ``bradley_terry`` or ``ipo``. IPO is no likelihood and has no forward form.
        form: ``forward`` or ``unbiased``.
        beta: β, above 0.
    """

    def __init__(
        self,
        artifact: Source,
        shares: Mapping[Any, float],
        *,
        loss: Literal["bradley_terry", "ipo"] = "bradley_terry",
        form: Literal["forward", "unbiased"] = "forward",
        beta: float = 1.0,
    ) -> None:
        """Open the artifact.

        Raises InputError, VerificationError and PrivateLabelError; the latter also if the outputs
        allow no unbiased estimate.
        """
        super().__init__()
        decoded, tables = opened(artifact), ForwardLogLoss(artifact)
        g = np.array([shares.get(label, np.nan) for label in tables.classes], np.float64)
        if len(shares) != len(g) or not ((g >= 0) & (g <= 1)).all():
            raise PrivateLabelError(
                "shares gives each label of the artifact a number from 0 (the second answer is "
                "preferred) to 1 (the first is)"
            )
        if loss not in ("bradley_terry", "ipo") or form not in ("forward", "unbiased"):
            raise PrivateLabelError("loss is bradley_terry or ipo, form is forward or unbiased")
        if not 0 < beta < float("inf"):
            raise PrivateLabelError("beta is a number above 0")
        if (loss, form) == ("ipo", "forward"):
            raise PrivateLabelError("ipo is no likelihood; use form='unbiased'")
        self.loss, self.form, self.beta = loss, form, beta
        if form == "unbiased":
            parts = [PrivateRows.empty(decoded, i) for i in range(len(decoded.tables))]
            values = np.concatenate([part.unbiased(g[:, None])[:, 0] for part in parts])
            self.register_buffer("values", torch.as_tensor(values))
            return
        apart, group = np.unique(np.abs(2 * g - 1).round(12), return_inverse=True)
        self.offsets = Parameter(torch.zeros(len(apart) - 1))
        self.register_buffer("shares", torch.as_tensor(g))
        self.register_buffer("groups", torch.as_tensor(group))
        self.register_buffer("log_chances", _logs(tables))

    def forward(self, margins: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """The mean loss. Raises PrivateLabelError for other shapes."""
        _require_rows(margins, codes)
        scores, kind = self.beta * margins, margins.dtype
        if self.form == "forward":
            likely = _row_of_each(self.log_chances, codes).to(kind)
            offsets = torch.cat([self.offsets, self.offsets.new_zeros(1)]).to(kind)[self.groups]
            labels = log_softmax(scores[:, None] * self.shares.to(kind) + offsets, dim=1)
            return -torch.logsumexp(labels + likely, dim=1).mean()
        values = _row_of_each(self.values, codes).to(kind)
        if self.loss == "ipo":
            c = 1 / (2 * self.beta)
            return (torch.square(margins) - 2 * c * (2 * values - 1) * margins + c * c).mean()
        return (softplus(scores) - values * scores).mean()


def _require_rows(scores: torch.Tensor, given: torch.Tensor, columns: Sequence[int] = ()) -> None:
    """Raise PrivateLabelError unless scores are [b, *columns] for [b] codes.

    PyTorch would broadcast [b, 1] and [b] to [b, b], every score with every label.
    """
    if given.ndim != 1 or scores.shape != (*given.shape, *columns):
        raise PrivateLabelError(
            f"scores have the shape {[*scores.shape]}, and codes {[*given.shape]}; they "
            f"must have {[given.numel(), *columns]} and [{given.numel()}]"
        )


def _row_of_each(table: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
    """[b, …] the table's row of each code. Raises PrivateLabelError for a code without one.

    PyTorch takes −1 for the last row.
    """
    whole = codes.long()
    if not ((whole == codes) & (whole >= 0) & (whole < len(table))).all():
        raise PrivateLabelError(
            f"expected the codes of private labels, whole numbers from 0 to {len(table) - 1}"
        )
    return table[whole]


def _logs(loss: ForwardLogLoss) -> torch.Tensor:
    """[M, k] logarithms of Pr[output | label]."""
    return torch.log(torch.as_tensor(loss.chances.T).clamp_min(1e-300))
