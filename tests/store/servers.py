"""A PostgreSQL server of the tests' own: on the loopback, in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["Postgres", "server"]

DRIVER: Final = "psycopg is not installed: pip install -e '.[postgres]'"
INSTALL: Final = "PostgreSQL is not here; `apt-get install postgresql` brings it"


def binaries() -> Path | None:
    """The folder of the newest server that is installed."""
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if installed:
        return max(installed, key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


class Postgres:
    """Run a server until it is stopped.

    Args:
        folder: The folder of its programs.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._data = Path(tempfile.mkdtemp(prefix="lutum-postgres-"))
        self._schemas = count(1)
        # It refuses to run as root.
        self._as: dict[str, Any] = {}
        if os.getuid() == 0:
            names = {each.pw_name: each for each in pwd.getpwall()}
            user = names.get("postgres") or names["nobody"]
            os.chown(self._data, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self._run("initdb", "--auth=trust", "--username=lutum", "--encoding=UTF8", "--no-sync")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.start()

    def _run(self, program: str, *options: str) -> None:
        subprocess.run(
            [self._folder / program, f"--pgdata={self._data}", *options],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=self._data,
            **self._as,
        )

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self._data,
            "fsync": "off",  # the processes here are killed, and never the machine
        }
        self._run(
            "pg_ctl",
            "--wait",
            f"--log={self._data / 'log'}",
            "--options=" + " ".join(f"-c {name}={value}" for name, value in settings.items()),
            "start",
        )

    def stop(self) -> None:
        """Stop it, as a crash would: every connection is lost."""
        self._run("pg_ctl", "--wait", "--mode=immediate", "stop")

    def remove(self) -> None:
        """Stop it for good."""
        self.stop()
        shutil.rmtree(self._data)

    def fresh(self) -> str:
        """Give the address of a schema of its own, with nothing in it."""
        import psycopg

        schema = f"s{os.getpid()}_{next(self._schemas)}"
        address = f"postgresql://lutum@127.0.0.1:{self.port}/postgres"
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{address}?options=-csearch_path%3D{schema},pg_catalog"


def needs_driver() -> None:
    """Skip a test of PostgreSQL where its driver is not installed."""
    pytest.importorskip("psycopg", reason=DRIVER)


def server() -> Postgres:
    """Start a server, or skip the test where none is installed, or no driver."""
    needs_driver()
    folder = binaries()
    if folder is None:
        pytest.skip(INSTALL)
    return Postgres(folder)
