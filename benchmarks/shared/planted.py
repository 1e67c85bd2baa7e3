"""Randomizers for the audit: faultless ones, and ones with a planted violation.

All take labels 0 … 52. What is called faultless claims ε = 1, and so do the others, which break it
by at least 0.1, or are no randomizer that treats each row by itself.
"""

import os
import sys

import numpy as np

K, EPSILON = 53, 1.0
LABELS = f"0..{K - 1}"
_WRONG = 1.1


def _words(n):
    return np.random.default_rng(int.from_bytes(os.urandom(16))).random(n)


def _response(labels, words, epsilon=EPSILON):
    """Randomized response from one uniform word a row; ε may differ by the row."""
    true = np.exp(epsilon) / (np.exp(epsilon) + K - 1)
    others = np.floor((words - true) / (1 - true) * (K - 1)).clip(0, K - 2).astype(np.int64)
    return np.where(words < true, labels, (labels + 1 + others) % K)


def _noise(words, scale=(K - 1) / EPSILON):
    """Discrete Laplace noise from one uniform word."""
    a = np.exp(-1 / scale)
    sign = np.where(words < 0.5, -1, 1)
    tail = np.maximum(2 * np.abs(words - 0.5), 1e-300)  # uniform
    # Pr[|n| ≥ j] = 2a^j/(1 + a)
    size = np.where(tail > 2 * a / (1 + a), 0, np.floor(np.log(tail * (1 + a) / 2) / np.log(a)))
    return (sign * size).astype(np.int64)


def faultless_response(labels):
    return _response(labels, _words(len(labels)))


def faultless_noise(labels):
    return labels + _noise(_words(len(labels)))


def faultless_clamped_noise(labels):
    return np.clip(faultless_noise(labels), 0, K - 1)


def wrong_epsilon(labels):
    return _response(labels, _words(len(labels)), _WRONG)


def wrong_epsilon_of_one_label(labels):
    return _response(labels, _words(len(labels)), np.where(labels == 17, _WRONG, EPSILON))


def wrong_scale(labels):
    return labels + _noise(_words(len(labels)), (K - 1) / _WRONG)


def truncated_tail(labels):
    """The noise stops where a thousandth of it would lie beyond."""
    most = int(np.ceil((K - 1) * np.log(1000)))
    return labels + np.clip(_noise(_words(len(labels))), -most, most)


def redrawn_tail(labels):
    """The same, but noise beyond is drawn again: no heap at the ends shows it."""
    most = int(np.ceil((K - 1) * np.log(1000)))
    noise = _noise(_words(len(labels)))
    while (far := np.abs(noise) > most).any():
        noise[far] = _noise(_words(int(far.sum())))
    return labels + noise


def clamped_around_the_label(labels):
    return np.clip(faultless_noise(labels), labels - 150, labels + 150)


def clamped_to_the_labels_of_the_call(labels):
    return np.clip(faultless_noise(labels), labels.min(), labels.max())


def swapped_rows(labels):
    """Rows of two labels of a table exchanged: ε is the same, the certified table is not."""
    return faultless_response(np.select([labels == 3, labels == 40], [40, 3], labels))


def swapped_entries(labels):
    """One row of a table, with two of its entries exchanged: those of outputs 0 and 20."""
    private = faultless_clamped_noise(labels)
    exchanged = np.select([private == 0, private == 20], [20, 0], private)
    return np.where(labels == 0, exchanged, private)


def neighbours_of_the_call(labels):
    """Every row gets the output of the row before it."""
    return np.roll(faultless_response(labels), 1)


def word_for_two_rows(labels):
    words = np.repeat(_words(len(labels) // 2 + 1), 2)[: len(labels)]
    return _response(labels, words)


def words_of_a_block(labels):
    """A thousand words serve every thousand rows."""
    return _response(labels, np.resize(_words(1000), len(labels)))


def opposite_words(labels):
    """The second of two rows takes one minus the word of the first."""
    words = np.repeat(_words(len(labels) // 2 + 1), 2)[: len(labels)]
    return labels + _noise(np.where(np.arange(len(labels)) % 2, words, 1 - words))


def seed_of_a_call(labels):
    return _response(labels, np.random.default_rng(0).random(len(labels)))


_fixed = np.random.default_rng(0)
_of_this_process = np.random.default_rng(int.from_bytes(os.urandom(16)))
_reseeded = [np.random.default_rng(0)]


def _reseed():
    _reseeded[0] = np.random.default_rng(int.from_bytes(os.urandom(16)))


os.register_at_fork(after_in_child=_reseed)


def seed_of_the_module(labels):
    return _response(labels, _fixed.random(len(labels)))


def repeated_by_forks(labels):
    return _response(labels, _of_this_process.random(len(labels)))


def repeated_by_restarts(labels):
    return _response(labels, _reseeded[0].random(len(labels)))


# name → the finding that must fail, of an audit without a certified table
VIOLATIONS = {
    "wrong_epsilon": "privacy",
    "wrong_epsilon_of_one_label": "privacy",
    "wrong_scale": "privacy",
    "truncated_tail": "privacy",
    "redrawn_tail": "privacy",
    "clamped_around_the_label": "privacy",
    "clamped_to_the_labels_of_the_call": "rows",
    "swapped_entries": "privacy",
    "neighbours_of_the_call": "rows",
    "word_for_two_rows": "independence",
    "words_of_a_block": "independence",
    "opposite_words": "independence",
    "seed_of_a_call": "independence",
    "seed_of_the_module": "processes",
    "repeated_by_forks": "processes",
    "repeated_by_restarts": "processes",
}
FAULTLESS = ("faultless_response", "faultless_noise", "faultless_clamped_noise")


# What says nothing about privacy, and must neither be accused nor trip the audit.


def faultless_in_place(labels):
    labels[:] = _response(labels.copy(), _words(len(labels)))
    return labels


_BUFFER = np.empty(1 << 20, dtype=np.int64)


def faultless_with_a_buffer(labels):
    sys.stdout.write("text that is no part of a report")
    _BUFFER[: len(labels)] = _response(labels, _words(len(labels)))
    return _BUFFER[: len(labels)]


def only_nan(labels):
    return np.full(len(labels), np.nan)


def text_for_the_terminal(labels):
    return [f"\x1b[2J{label}" for label in labels]


def raises_for_the_terminal(labels):
    raise ValueError("\x1b[2Jno")


def ends_the_process(labels):
    raise SystemExit(0)


def interrupted(labels):
    raise KeyboardInterrupt
