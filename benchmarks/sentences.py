"""Sentences before and after a revision of the text, chosen at random, side by side.

    python benchmarks/sentences.py BEFORE [AFTER]       (AFTER: HEAD)

Takes what two commits have in commands (help and output), in errors and in docs; pairs each
sentence that is gone with the most similar one that is new in the same file; and prints 20 pairs of
each kind as a table in Markdown. The choice is random with a fixed seed.
"""

import ast
import difflib
import random
import re
import subprocess
import sys
from collections import defaultdict

EACH = 20
LEAST_WORDS, MOST_WORDS = 6, 60
LEAST_SIMILAR = 0.35
PRODUCT = re.compile(
    r"^(verifier/labeldp_verify|runtime/labeldp_runtime|labeldp_compile|trainer/labeldp_trainer)/.*\.py$"
)


def git(*words):
    done = subprocess.run(["git", *words], capture_output=True, text=True, check=True)
    return done.stdout


def texts_of_python(source):
    """(is it an error, text) of each string of several words, with … for a value."""
    tree, errors, inside = ast.parse(source), set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            errors.update(ast.walk(node))
    for node in ast.walk(tree):
        if node in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            inside.update(ast.walk(node))
            parts = (v.value if isinstance(v, ast.Constant) else "…" for v in node.values)
            yield node in errors, "".join(parts)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node in errors, node.value


def sentences(text):
    for part in re.split(r"(?<=[.;!?])\s+|\n\s*\n|\n(?=[-*|#>])", text):
        one = " ".join(part.split())
        is_example = one.startswith(("Example", "labeldp "))
        if LEAST_WORDS <= len(one.split()) <= MOST_WORDS and not is_example:
            yield one


def of_commit(commit):
    """Kind → file → its sentences."""
    found = defaultdict(lambda: defaultdict(dict))
    for path in git("ls-tree", "-r", "--name-only", commit).splitlines():
        if PRODUCT.match(path):
            command = "/cli/" in path or path.endswith("cli.py") or "/console/" in path
            for is_error, text in texts_of_python(git("show", f"{commit}:{path}")):
                kind = "errors" if is_error else "commands" if command else None
                if kind:
                    found[kind][path].update(dict.fromkeys(sentences(text)))
        elif path.endswith(".md") and (path.startswith("docs/") or path == "README.md"):
            text = re.sub(r"^```.*?^```$", "", git("show", f"{commit}:{path}"), flags=re.M | re.S)
            found["docs"][path].update(dict.fromkeys(sentences(text)))
    return found


def pairs(before, after):
    """(file, old sentence, new sentence), each old one with its nearest new one."""
    everywhere = {one for file in after.values() for one in file}
    for path, old in sorted(before.items()):
        gone = [one for one in old if one not in everywhere]
        new = [one for one in after.get(path, {}) if one not in old]
        for one in gone:
            close = difflib.get_close_matches(one, new, n=1, cutoff=LEAST_SIMILAR)
            if close:
                yield path, one, close[0]


def main(before, after="HEAD"):
    old, new = of_commit(before), of_commit(after)
    choose = random.Random(33)
    for kind in ("commands", "errors", "docs"):
        found = list(pairs(old[kind], new[kind]))
        print(f"\n## {kind}: {min(EACH, len(found))} of {len(found)} that changed\n")
        print("| before | after | file |\n|---|---|---|")
        for path, *both in choose.sample(found, min(EACH, len(found))):
            print("|", " | ".join(one.replace("|", "\\|") for one in both), f"| `{path}` |")


if __name__ == "__main__":
    main(*sys.argv[1:])
