"""The claims of a certificate: ``records.py`` holds their data, other files state and check them.

``whole_file.py`` and ``tables.py`` are about what every file claims, ``claim.py`` finds the claims
that only some make.
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
