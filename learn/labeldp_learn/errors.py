"""The one error of this package."""

from labeldp_verify.errors import InputError


class PrivateLabelError(InputError, ValueError):
    """Labels, columns or artifact do not fit together; the message says what was expected.

    It is a ValueError, too, as scikit-learn expects. No message quotes a label.
    """
