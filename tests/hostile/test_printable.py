"""The two doors of printable text, the compiler's and the runtime's, let the same through."""

import random
import sys
import unicodedata

import labeldp_runtime.errors as runtime
import labeldp_verify.printable as compiler

BLOCK = 1 << 12


def test_every_code_point():
    marks = 0
    for start in range(0, sys.maxunicode + 1, BLOCK):
        characters = list(map(chr, range(start, start + BLOCK)))
        has_marks = any(unicodedata.category(c)[0] == "M" for c in characters)
        text = ("a" if has_marks else "").join(characters)  # so that no mark stands on another
        shown = compiler.one_line(text, len(text))
        assert runtime.one_line(text, len(text)) == shown, hex(start)
        assert len(shown) == len(text)
        marks += has_marks
    assert marks > 10


def test_rows_of_marks_and_of_what_is_hidden():
    marks = [c for c in map(chr, range(0x3000)) if unicodedata.category(c) in ("Mn", "Me")]
    hidden = "\u034f\u180b\u115f\u202e\x1b\n\ud800\u200b\ue000\u0378\u2028"
    generator = random.Random(3)
    floods = 0
    for _ in range(3000):
        length = generator.randint(0, 24)
        text = "".join(generator.choice(["a", "é", *hidden, *marks[:99]]) for _ in range(length))
        assert runtime.one_line(text) == compiler.one_line(text)
        floods += compiler.one_line(text).count(compiler.REPLACEMENT) > sum(map(text.count, hidden))
    assert floods > 100


def test_both_end_at_the_same_place():
    assert runtime.MAX_CHARACTERS == compiler.MAX_CHARACTERS
    for text in ("x" * 2000, "x" * 2001, "é" * 2001, "a" + "\u0301" * 3000, "x" * 1999 + "\n\n"):
        assert runtime.one_line(text) == compiler.one_line(text)
    for most in range(8):
        assert runtime.one_line("e\u0301\u0301\u0301\u0301\u0301x", most) == compiler.one_line(
            "e\u0301\u0301\u0301\u0301\u0301x", most
        )
