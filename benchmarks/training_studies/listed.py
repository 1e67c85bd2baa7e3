"""An option that lists names."""

import argparse


def listed(known):
    """An argparse type: names of ``known`` with semicolons between; another name is an error."""

    def read(text):
        names = text.split(";")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"unknown {name!r}: choose of {'; '.join(known)}")
        return names

    return read
