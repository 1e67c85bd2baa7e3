"""Errors that say what to do; their messages are one line, without control characters.

Messages quote files: names, columns, reasons. Services log them, and a file may come from a
stranger.
"""

import unicodedata
from typing import Any

MAX_CHARACTERS = 2_000
MAX_MARKS = 4
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Letters and marks that show nothing: names that differ by them only would look the same.
_INVISIBLE = "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0"


def one_line(text: str, most: int = MAX_CHARACTERS) -> str:
    """The text without controls, line breaks, marks of direction, surrogates and the like.

    They become U+FFFD, as do marks beyond four on one character; of a longer text the beginning is
    left, and how long it was.
    """
    if text.isascii() and text.isprintable() and len(text) <= most:
        return text
    result, run = [], 0
    for c in text[:most]:
        kind = unicodedata.category(c)
        run = run + 1 if kind in ("Mn", "Me") and c not in _INVISIBLE else 0
        hidden = kind[0] == "C" or kind in ("Zl", "Zp") or c in _INVISIBLE
        if run <= MAX_MARKS + 1:
            result.append(_REPLACEMENT if hidden or run > MAX_MARKS else c)
    end = f"… ({len(text):,} characters)" if len(text) > most else ""
    return "".join(result) + end


class OneLine(Exception):  # noqa: N818  # a mixin, not an error
    """An error whose message is one printable line from the beginning."""

    def __init__(self, *args: Any) -> None:
        """Keep the message, made printable."""
        super().__init__(*(one_line(a) if isinstance(a, str) else a for a in args))


class RuntimeArtifactError(OneLine):
    """An artifact cannot be used; the subclass says why."""


class ArtifactError(RuntimeArtifactError):
    """The file is missing, damaged, too large, or not a labeldp artifact."""


class DamagedArtifactError(ArtifactError):
    """The file was changed or cut after it was written: copy it again, or compile it again."""


class ArtifactTooLargeError(ArtifactError):
    """The file is larger than any artifact: it is something else."""


class UnsupportedFormatError(RuntimeArtifactError):
    """The file has a newer format: upgrade labeldp-runtime."""


class InsecureArtifactError(RuntimeArtifactError):
    """The artifact was made with a test seed: compile it again without one."""


class UnpreparedRowsError(RuntimeArtifactError):
    """The artifact has rules about rows that this host cannot enforce: the message lists them."""


class PlatformError(RuntimeArtifactError):
    """This build of onnxruntime computes wrongly: use another version of it."""


class PolicyError(RuntimeArtifactError):
    """The artifact is not what ``require`` asks for; the message says why."""


class LabelError(OneLine, ValueError):
    """The labels have a shape or type that the artifact does not take."""


class GroupError(OneLine, ValueError):
    """The groups are missing, of another type than the artifact's, or not one per label."""


class IdError(OneLine, ValueError):
    """The ids are missing, null, of an unusable type, or not one per label."""


class DuplicateIdError(IdError):
    """Two labels of one input have the same id: each label needs an id of its own."""


class KeyFileError(OneLine, ValueError):
    """A key file is missing, damaged, open to other users, or exists already."""


class EngineError(RuntimeError):
    """Without a key this engine could lose rows and draw others twice, unnoticed: give a key."""


class ReplayWarning(UserWarning):
    """An engine may compute the private labels again, and without a key that spends ε again."""


class MissingExtraError(ImportError):
    """An optional part of labeldp-runtime is not installed; the message names the command."""
