"""What a private run keeps to itself: the key of its noise, σ, and how to recognise its labels.

A resumed run does the steps after the last checkpoint again with the same noise. On other labels
the same noise would cancel in the difference, so that it is refused: the folder keeps a keyed hash
of the labels.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labeldp_trainer.data import array_digest
from labeldp_trainer.dp_gradient.noise import secret_words
from labeldp_trainer.errors import RunFolderError


@dataclass(frozen=True)
class Kept:
    """The secrets of a run.

    Attributes:
        noise_key: uint32 [2], the key of sampling and noise.
        noise_multiplier: σ.
        labels_key: uint8 [32].
        labels_hash: uint8 [32], a hash of the labels under ``labels_key``.
    """

    noise_key: NDArray[np.uint32]
    noise_multiplier: float
    labels_key: NDArray[np.uint8]
    labels_hash: NDArray[np.uint8]

    @classmethod
    def new(cls, labels: Any, noise_multiplier: float) -> Kept:
        """Fresh secrets from the operating system."""
        key = secrets.token_bytes(32)
        return cls(secret_words(), noise_multiplier, _bytes(key), _bytes(_hash(key, labels)))

    @classmethod
    def of_run(
        cls, stored: Mapping[str, NDArray[Any]] | None, labels: Any, calibrate: Callable[[], float]
    ) -> Kept:
        """Those of an interrupted run, or fresh ones with the σ that ``calibrate`` finds.

        Raises RunFolderError if the interrupted run had other labels.
        """
        if stored is None:
            return cls.new(labels, calibrate())
        try:
            kept = cls(
                stored["noise_key"],
                float(stored["noise_multiplier"]),
                stored["labels_key"],
                stored["labels_hash"],
            )
        except (KeyError, TypeError, ValueError):
            raise RunFolderError(
                "kept.npz holds no key of this method: start another run"
            ) from None
        known = kept.labels_hash.tobytes()
        if not hmac.compare_digest(known, _hash(kept.labels_key.tobytes(), labels)):
            raise RunFolderError(
                "the run was started with other labels: the same noise on both would show the "
                "difference; start another run"
            )
        return kept

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays to store."""
        return {
            "noise_key": self.noise_key,
            "noise_multiplier": np.array(self.noise_multiplier),
            "labels_key": self.labels_key,
            "labels_hash": self.labels_hash,
        }


def _hash(key: bytes, labels: Any) -> bytes:
    return hmac.new(key, array_digest(labels).encode(), hashlib.sha256).digest()


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)
