"""Files and folders that appear whole or not at all, and that nobody else reads until then.

A file is written beside its final name, as ``.NAME.labeldp-partial``, with the mode 0600 (a folder:
0700) from the start, and locked while its writer lives. A killed writer cannot remove it. The next
writer of the same name finds it without a lock, and removes it.
"""

import contextlib
import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from labeldp_runtime.errors import one_line

try:
    import fcntl
except ImportError:  # Windows: reading keys and artifacts needs no lock
    fcntl = None  # type: ignore[assignment]

Found = Callable[[Path], None]
Sealed = Callable[[Path], None]

_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = _LINK | getattr(os, "O_DIRECTORY", 0)


class UnfinishedError(OSError):
    """An unfinished file is in the way and may not be removed, or a file has its name and may still
    be lost; the message says why.
    """


class BusyError(UnfinishedError):
    """Another process writes the file now."""


def say_removed(partial: Path) -> None:
    """One line on stderr."""
    line = f"labeldp: {partial}: removed; a killed run had left it"
    sys.stderr.write(one_line(line) + "\n")


def partial_of(path: Path) -> Path:
    """The name under which a file or folder is written."""
    return path.with_name(f".{path.name}.labeldp-partial")


@contextmanager
def replaced_when_whole(
    path: Path,
    *,
    most: int = 0o7777,
    replace: bool = True,
    found: Found = say_removed,
    sealed: Sealed | None = None,
    is_resumed: bool = False,
    is_last: bool = True,
) -> Iterator[BinaryIO]:
    """An open file that takes the name ``path`` at the end, synced, or is removed on failure.

    The final mode is that of the replaced file, or else what the umask leaves; in both cases
    without the bits that ``most`` lacks. If another user owns the replaced file, it is what both
    leave. ``found`` gets the name of a leftover of a killed writer, after it was removed.
    ``sealed`` gets the complete file, on the disk, just before it is named. With ``is_resumed``, an
    interruption from there on leaves the file, as a kill does: somebody names it later. If
    ``is_last`` is false, another file is named in the same folder next, which syncs both names.

    Raises UnfinishedError if another process writes the same file now, or if something is in the
    way that no killed writer of this user left; FileExistsError if ``replace`` is false and the
    name is taken; OSError.
    """
    partial = partial_of(path)

    handle, stays = _claimed(partial, lambda: _new_file(partial), found), False
    with os.fdopen(handle, "w+b") as file:
        try:
            yield file
            file.flush()
            os.fsync(handle)
            mode = _final_mode(path) & most
            if sealed is not None:
                stays = is_resumed
                try:
                    sealed(partial)
                except Exception:  # it was refused, and not interrupted
                    stays = False
                    raise
            if replace:
                partial.replace(path)
            else:
                _take_name(partial, path)
            _set_mode(handle, mode)  # not before: a kill would leave what others can read
        except BaseException:
            if not stays and _is(partial, handle):
                partial.unlink()
            raise
    if is_last:
        _sync_name(path)


@contextmanager
def folder_when_whole(
    path: Path, *, most: int = 0o777, found: Found = say_removed, sealed: Sealed | None = None
) -> Iterator[Path]:
    """A new folder that takes the name ``path`` at the end: like ``replaced_when_whole``.

    An existing folder is only replaced if it is empty.
    """
    partial = partial_of(path)

    def make() -> int:
        partial.mkdir(mode=0o700)
        return os.open(partial, os.O_RDONLY | _FOLDER)

    handle = _claimed(partial, make, found)
    try:
        try:
            yield partial
            _sync_open(handle)
            if sealed is not None:
                sealed(partial)
            partial.rename(path)
            _set_mode(handle, 0o777 & ~_umask() & most)
        except BaseException:
            if _is(partial, handle):
                shutil.rmtree(partial, ignore_errors=True)
            raise
    finally:
        os.close(handle)
    _sync_name(path)


@contextmanager
def name_held(path: Path) -> Iterator[None]:
    """Keep others from writing a name, as ``replaced_when_whole`` does, but write nothing.

    The leftover of a killed holder is empty, and removed without a message. Raises UnfinishedError
    if another process holds the name or writes it, as above; OSError.
    """
    partial = partial_of(path)

    handle = _claimed(partial, lambda: _new_file(partial), lambda partial: None)
    try:
        yield
    finally:
        try:
            if _is(partial, handle):
                partial.unlink()
        finally:
            os.close(handle)


def _new_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _LINK, 0o600)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk: losing a rename could lose labels."""
    handle = os.open(path, os.O_RDONLY)
    try:
        _sync_open(handle)
    finally:
        os.close(handle)


def _sync_open(folder: int) -> None:
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems have no such call for folders
            raise


def _sync_name(path: Path) -> None:
    """``sync_folder`` of what has its name now. Raises UnfinishedError."""
    try:
        with contextlib.suppress(PermissionError):  # a folder may be writable and not readable
            sync_folder(path.parent)
    except OSError as error:
        raise UnfinishedError(
            f"{path}: is there and complete, but a power failure may remove it: its folder cannot "
            f"be synced: {error.strerror}"
        ) from error


def _claimed(partial: Path, make: Callable[[], int], found: Found) -> int:
    """A handle of what was made, locked; one of several processes gets it."""
    while True:
        try:
            handle = make()
        except FileExistsError:
            if _removed(partial):
                found(partial)
            continue
        try:
            # Between making and locking it looks dead, and another process may have removed it.
            if _locked(handle) is not False and _is(partial, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _removed(partial: Path) -> bool:
    """Remove what a killed writer left; False if it has gone by itself. Raises UnfinishedError."""
    try:
        there = partial.lstat()
        kind = stat.S_IFMT(there.st_mode)
        if kind not in (stat.S_IFREG, stat.S_IFDIR) or there.st_uid != os.geteuid():
            raise UnfinishedError(
                f"{partial}: is in the way, and was not left by a run of yours: remove it"
            )
        folder = kind == stat.S_IFDIR
        handle = os.open(partial, os.O_RDONLY | _FOLDER if folder else os.O_RDWR | _LINK)
    except FileNotFoundError:
        return False
    try:
        locked = _locked(handle)
        if not _is(partial, handle):
            return False
        if locked is False:
            raise BusyError(
                f"{partial}: another run is writing this output now: wait for it, or choose "
                "another output"
            )
        if locked is None:
            raise UnfinishedError(
                f"{partial}: was left by another run, and this file system cannot show whether "
                "that run has ended: if it has, remove the file"
            )
        shutil.rmtree(partial) if folder else partial.unlink()
        return True
    finally:
        os.close(handle)


def _locked(handle: int) -> bool | None:
    """Whether the lock is ours now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return False if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _is(path: Path, handle: int) -> bool:
    """Whether the name still belongs to the open file."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _take_name(partial: Path, path: Path) -> None:
    """Give a file a name that must be free. Raises FileExistsError."""
    try:
        os.link(partial, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links
        # The unfinished file keeps other runs away. An empty file under the name would keep away
        # everybody, but a kill would leave it there.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        partial.replace(path)
    else:
        partial.unlink()


def _set_mode(handle: int, mode: int) -> None:
    with contextlib.suppress(PermissionError):  # a file system that has no modes
        os.fchmod(handle, mode)


def _final_mode(path: Path) -> int:
    """Of the file that is replaced, or else what the umask leaves."""
    try:
        replaced = path.stat()
    except FileNotFoundError:
        return 0o666 & ~_umask()
    mode = stat.S_IMODE(replaced.st_mode)
    # The owner chose the mode; another user may have put the file there to read what replaces it.
    return mode if replaced.st_uid == os.geteuid() else mode & 0o666 & ~_umask()


def _umask() -> int:
    """The umask; where Linux tells, without changing it under other threads."""
    with contextlib.suppress(OSError):
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        if shown := re.search(r"^Umask:\s*([0-7]+)$", status, re.MULTILINE):
            return int(shown[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def read_secret(path: Path, most: int) -> tuple[bytes, str | None]:
    """At most ``most`` bytes of a file, and why it cannot keep a secret, in a sentence, or None.

    Raises OSError.
    """
    with path.open("rb") as file:
        mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
        data = file.read(most)
    if os.name != "posix" or not mode & 0o077:
        return data, None
    return data, (
        f"{path}: may be read or changed by other users (mode {mode:04o}): "
        f"run chmod 600 {path}, and make a new key if others may have read it"
    )
