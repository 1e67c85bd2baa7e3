"""What can go wrong, and what to do."""

from labeldp_runtime.printable import OneLine


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
