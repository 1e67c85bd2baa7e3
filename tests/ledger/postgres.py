"""A PostgreSQL server of our own: a temporary folder, a Unix socket, no TCP port, a password."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

from runtime.tests.engines.cluster import wait_for

PASSWORD = "Tulips-and-canals-1637"  # must be in nothing that labeldp writes
OWNER = "owner"


def programs() -> Path | None:
    """The folder of initdb and postgres, the newest of Debian's; None if there are none."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent  # it may be a link to where the others are
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    return max(folders, key=lambda folder: float(folder.parent.name), default=None)


class Server:
    """Run by nobody of importance: PostgreSQL refuses to be root."""

    def __init__(self, bin_folder: Path) -> None:
        self.bin = bin_folder
        # Not pytest's folder, which root alone may enter.
        self.folder = Path(tempfile.mkdtemp(prefix="labeldp-postgres-"))
        self.data = self.folder / "data"
        self.user: dict[str, object] = {}
        if os.getuid() == 0:
            try:
                other = pwd.getpwnam("postgres")
            except KeyError:
                other = pwd.getpwnam("nobody")
            os.chown(self.folder, other.pw_uid, other.pw_gid)
            self.user = {"user": other.pw_uid, "group": other.pw_gid, "extra_groups": []}
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)  # in a folder of mode 0700
        self.call(
            "initdb", "-D", self.data, "-U", OWNER, "--auth=scram-sha-256", f"--pwfile={secret}",
            "--encoding=UTF8", "--locale=C", "--no-sync",
        )  # fmt: skip
        self.process: subprocess.Popen[bytes] | None = None
        try:
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def call(self, program: str, *arguments: object) -> None:
        command = [str(self.bin / program), *map(str, arguments)]
        done = subprocess.run(
            command, cwd=self.folder, capture_output=True, text=True, check=False, **self.user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, **more: str) -> None:
        log = (self.folder / "log").open("ab")
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.folder),
            "max_connections": "60",
            "shared_buffers": "16MB",
            "recovery_init_sync_method": "syncfs",  # after a crash: not each of a thousand files
            **more,
        }
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        self.process = subprocess.Popen(
            [str(self.bin / "postgres"), "-D", str(self.data), *flags],
            cwd=self.folder,
            stdout=log,
            stderr=log,
            **self.user,
        )
        log.close()
        wait_for(self._is_ready, "the server")

    def _is_ready(self) -> bool:
        assert self.process.poll() is None, (self.folder / "log").read_text()
        ready = [str(self.bin / "pg_isready"), "-q", "-h", str(self.folder)]
        return subprocess.run(ready, check=False).returncode == 0

    def stop(self) -> None:
        """At once, without a word to the disk (an immediate shutdown): every backend is killed."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def kill(self) -> None:
        """SIGKILL to all of it, as when the power goes."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)  # now it starts no more children
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        pids = [self.process.pid, *map(int, children.read_text().split())]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        # A new server does not start beside the old one's children.
        wait_for(lambda: not any(map(_is_running, pids)), "the end of the server")

    def close(self) -> None:
        if self.is_running:
            self.stop()
        shutil.rmtree(self.folder)

    def url(
        self, schema: str, user: str = OWNER, password: str = PASSWORD, at: Path | None = None
    ) -> str:
        """Of a ledger; ``at`` is another folder with a socket."""
        secret = f":{password}" if password else ""
        return f"postgresql://{user}{secret}@/postgres?host={at or self.folder}&schema={schema}"

    def connect(self, user: str = OWNER):
        import psycopg

        return psycopg.connect(
            host=str(self.folder), user=user, password=PASSWORD, dbname="postgres", autocommit=True
        )


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
