"""``labeldp keygen``: a secret key for replay-safe randomization."""

from pathlib import Path

import click
from labeldp_runtime import Key, KeyFileError

from labeldp_compile.cli.command import command, tell
from labeldp_compile.cli.options import PATH, quiet_option
from labeldp_compile.errors import InputError


@command("keygen", "labeldp keygen labels.key")
@click.argument("file", type=PATH)
@quiet_option
def keygen_command(file: Path, quiet: bool) -> None:
    """Write a new random key to FILE, for labeldp randomize --key.

    Only its owner can read the file, and an existing file is never overwritten. Anyone who has the
    key, the ids and the private labels can undo the noise. Only the owner of the labels should have
    the key.
    """
    try:
        key = Key.create(file)
    except KeyFileError as error:
        raise InputError(str(error)) from None
    if not quiet:
        tell(f"{file}: a new key with the fingerprint {key.fingerprint}")
