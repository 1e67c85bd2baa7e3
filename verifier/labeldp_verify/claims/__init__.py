"""The claims of a certificate, a file each: its fields, how they are stated, and how checked.

``certificate.py`` is what every file claims, ``registry.py`` finds the claims that only some make.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
