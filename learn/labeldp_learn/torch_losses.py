"""The losses of ``losses.py`` as modules of PyTorch, which this file imports: install it yourself.

Each takes scores and the number per row that ``loss.labels(private)`` gives, and returns the mean
loss of a batch. Automatic differentiation finds gradients, so no second derivative is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import Module
from torch.nn.functional import log_softmax, logsigmoid

from labeldp_learn.columns import PrivateLabelError
from labeldp_learn.losses import BinaryForwardLogLoss, ForwardLogLoss
from labeldp_learn.private_labels import Source


class TorchForwardLogLoss(Module):  # type: ignore[misc]
    """The forward-corrected log loss for scores [b, k] and codes [b] of private labels."""

    def __init__(self, artifact: Source) -> None:
        """As ``ForwardLogLoss``."""
        super().__init__()
        self.register_buffer("log_chances", _logs(ForwardLogLoss(artifact)))

    def forward(self, scores: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        """The mean of −ln Pr[the private label]. Raises PrivateLabelError for other shapes."""
        _require_rows(scores, codes, self.log_chances.shape[1:])
        likely = self.log_chances.to(scores.dtype)[codes.long()]
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
        likely = self.log_chances.to(scores.dtype)[codes.long()]
        both = torch.stack([logsigmoid(-scores), logsigmoid(scores)], dim=1)
        return -torch.logsumexp(both + likely, dim=1).mean()


class TorchUnbiasedPoissonLoss(Module):  # type: ignore[misc]
    """The mean of exp(score) − v·score for unbiased targets v [b], which may be negative."""

    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """A scalar. Raises PrivateLabelError for other shapes."""
        _require_rows(scores, targets)
        return (torch.exp(scores) - targets * scores).mean()


class TorchUnbiasedSquaredLoss(Module):  # type: ignore[misc]
    """The mean of ½(score − v)² for unbiased targets v [b]."""

    def forward(self, scores: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """A scalar. Raises PrivateLabelError for other shapes."""
        _require_rows(scores, targets)
        return 0.5 * torch.square(scores - targets).mean()


def _require_rows(scores: torch.Tensor, given: torch.Tensor, columns: Sequence[int] = ()) -> None:
    """Raise PrivateLabelError unless scores are [b, *columns] for [b] codes or targets.

    PyTorch would broadcast [b, 1] and [b] to [b, b], every score with every label.
    """
    if given.ndim != 1 or scores.shape != (*given.shape, *columns):
        raise PrivateLabelError(
            f"scores have the shape {[*scores.shape]}, and codes or targets {[*given.shape]}; they "
            f"must be {['b', *columns]} and ['b']"
        )


def _logs(loss: ForwardLogLoss) -> torch.Tensor:
    """[M, k] logarithms of Pr[output | label]."""
    return torch.log(torch.as_tensor(loss.chances.T).clamp_min(1e-300))
