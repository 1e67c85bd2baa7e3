"""60 sentences of the pages with a number or a promise, chosen at random, for a person to check.

python benchmarks/claims.py [SEED]       (1)
"""

import random
import re
import sys
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLAIM = re.compile(r"\d|\b(never|no|not|only|always|every|each|all|cannot|must|nothing)\b")
CODE = re.compile(r"^```.*?^```$", re.M | re.S)
BLOCK = re.compile(r"\n(?=[-*|#\n]|\d\. )")
SENTENCE = re.compile(r"\S.*?[.:!?](?=\s+[A-Z`*\[])|\S.*", re.S)


def sentences(text):
    """(line, sentence) of a page; a row of a table is one."""
    text = CODE.sub(lambda code: "\n" * code[0].count("\n"), text)
    starts = [0, *(match.end() for match in BLOCK.finditer(text)), len(text)]
    for start, end in pairwise(starts):
        if not text[start:end].startswith(("#", "|--", "    ")):
            for found in SENTENCE.finditer(text, start, end):
                yield text.count("\n", 0, found.start()) + 1, " ".join(found[0].split())


def main(seed):
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    every = [(page, *each) for page in pages for each in sentences(page.read_text("utf-8"))]
    claims = [each for each in every if CLAIM.search(each[2])]
    for page, line, sentence in sorted(random.Random(seed).sample(claims, 60)):
        print(f"{page.relative_to(ROOT)}:{line}: {sentence}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
