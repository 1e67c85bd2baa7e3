"""The only exact analysis there is: from the integers of a randomizer to all that is claimed of it.

The compiler, the certificate, the tools and the verifier ask here. What it finds is checked by
enumeration from the definition alone (``tests/analysis``).
"""

from labeldp_verify.public_names import loaded_on_use

__getattr__ = loaded_on_use(__name__)
