"""What can go wrong, and the way out."""


class RuntimeArtifactError(Exception):
    """An artifact cannot be used; the subclass says why."""


class ArtifactError(RuntimeArtifactError):
    """The file is missing, damaged, too large, or no labeldp artifact."""


class UnsupportedFormatError(RuntimeArtifactError):
    """The file has a newer format: upgrade labeldp-runtime."""


class InsecureArtifactError(RuntimeArtifactError):
    """The artifact was made with a test seed: compile it again without one."""


class PlatformError(RuntimeArtifactError):
    """This build of onnxruntime computes wrongly: use another version of it."""


class LabelError(ValueError):
    """The labels have a shape or type that the artifact does not take."""
