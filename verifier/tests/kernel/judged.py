"""What the kernel says of an altered file, and whether running it contradicts that."""

from labeldp_verify import kernel

from verifier.tests.kernel.enumerated import Fails, opened, real_ratio

MOST_BITS = 7


def judged(data, rng):
    """``refused``, ``not loaded``, ``too many words``, ``private`` or what is wrong.

    A file that the kernel accepts is run with every word, within the bound that the kernel gave.
    """
    try:
        integers = kernel.integers_of(data)
        ratio = integers.ratio()
    except kernel.Refused:
        return "refused"
    session = opened(data)
    if session is None:
        return "not loaded"
    bits = max(table.bits for table in integers.tables)
    words = 2 if isinstance(integers.tables[0], kernel.Noise) else 1
    if bits * words > MOST_BITS + 3 or any(table.bits < 1 for table in integers.tables):
        return "too many words"
    try:
        real = real_ratio(session, bits, words, rng)
    except Fails as failure:
        return f"WRONG: {failure}"
    if real is None:
        return "too many words"
    return "private" if real <= ratio else f"WRONG: {real} is more than {ratio}"
