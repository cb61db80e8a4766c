"""A PostgreSQL server of the tests' own: on the loopback, in a folder that goes with it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest

__all__ = ["Bouncer", "Postgres", "Proxy", "bouncer", "server"]

DRIVER: Final = "psycopg is not installed: pip install -e '.[postgres]'"
NO_BOUNCER: Final = "PgBouncer is not here; `apt-get install pgbouncer` brings it"
INSTALL: Final = "PostgreSQL is not here; `apt-get install postgresql` brings it"


def binaries() -> Path | None:
    """The folder of the newest server that is installed."""
    installed = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if installed:
        return max(installed, key=lambda path: float(path.parent.name))
    found = shutil.which("initdb")
    return None if found is None else Path(found).resolve().parent


def not_as_root(folder: Path) -> dict[str, Any]:
    """Let somebody else than root have a folder, and run a server: it refuses to run as root."""
    if os.getuid() != 0:
        return {}
    names = {each.pw_name: each for each in pwd.getpwall()}
    user = names.get("postgres") or names["nobody"]
    for path in (folder, *folder.iterdir()):
        os.chown(path, user.pw_uid, user.pw_gid)
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port


class Postgres:
    """Run a server until it is stopped.

    Args:
        folder: The folder of its programs.
        fsync: Whether a COMMIT waits for the disk; the processes here are killed, and never the
            machine.
    """

    def __init__(self, folder: Path, *, fsync: bool = False) -> None:
        self._folder, self._fsync = folder, fsync
        self._data = Path(tempfile.mkdtemp(prefix="lutum-postgres-"))
        self._schemas = count(1)
        self._as = not_as_root(self._data)
        self._run("initdb", "--auth=trust", "--username=lutum", "--encoding=UTF8", "--no-sync")
        self.port: int = free_port()
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
            "fsync": "on" if self._fsync else "off",
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

    def demote(self) -> None:
        """Make it a standby, which takes no writes."""
        self._run("pg_ctl", "--wait", "--mode=fast", "stop")
        (self._data / "standby.signal").touch()
        self.start()

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

    @property
    def root(self) -> str:
        """The address of the server, without a place in it."""
        return f"postgresql://lutum@127.0.0.1:{self.port}"

    def fresh_database(self, encoding: str = "UTF8") -> str:
        """Make a database of its own, and give its name."""
        import psycopg

        name = f"d{os.getpid()}_{next(self._schemas)}"
        with psycopg.connect(f"{self.root}/postgres", autocommit=True) as connection:
            connection.execute(
                f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' "
                "LC_CTYPE 'C'"
            )
        return name


class Proxy:
    """Stand between a server and its clients, and lose what it should.

    Args:
        port: That of the server.

    Attributes:
        swallows: Whether the answers of the server are lost; the connections stay open.
        delay: How long each answer takes, in seconds.
        loses: What is lost with its answer, the connection too, once a client sends it.
    """

    def __init__(self, port: int) -> None:
        self.swallows = False
        self.delay = 0.0
        self.loses: bytes | None = None
        self._behind = port
        self._sockets: list[socket.socket] = []
        self._lost: set[socket.socket] = set()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._behind))
                self._sockets += (client, server)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        is_server = one.getpeername()[1] == self._behind
        with suppress(OSError):
            while data := one.recv(2**16):
                if is_server:
                    time.sleep(self.delay)
                    if one in self._lost:  # the server has done it, and nobody reads so
                        break
                    if self.swallows:
                        continue
                elif self.loses is not None and self.loses in data:
                    self.loses = None
                    self._lost.add(other)
                other.sendall(data)
        for each in (one, other):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close everything."""
        for each in (self._listening, *self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Bouncer:
    """Run PgBouncer in transaction mode before a server, until it is stopped.

    Args:
        program: Where it is.
        behind: The server.
    """

    def __init__(self, program: str, behind: Postgres) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lutum-bouncer-"))
        self.port = free_port()
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": self.port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": 2,
            "logfile": self._folder / "log",
        }
        ini = self._folder / "pgbouncer.ini"
        ini.write_text(
            f"[databases]\n* = host=127.0.0.1 port={behind.port} user=lutum\n[pgbouncer]\n"
            + "".join(f"{name} = {value}\n" for name, value in settings.items())
        )
        user = not_as_root(self._folder)
        self._running = subprocess.Popen(
            [program, "--quiet", ini],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self._folder,
            **user,
        )
        for _ in range(500):
            with suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.02)
        raise RuntimeError((self._folder / "log").read_text())

    def address(self, database: str) -> str:
        """Give the address of a database behind it."""
        return f"postgresql://lutum@127.0.0.1:{self.port}/{database}"

    def remove(self) -> None:
        """Stop it for good."""
        self._running.terminate()
        self._running.wait(30)
        shutil.rmtree(self._folder)


def bouncer(behind: Postgres) -> Bouncer:
    """Start PgBouncer, or skip the test where it is not installed."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip(NO_BOUNCER)
    return Bouncer(program, behind)


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
