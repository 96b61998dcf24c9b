"""Which MariaDB or MySQL do the tests use? That of MYSQL_URL, else one on the usual port, else none, loudly."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import unquote, urlsplit

from tests.servers import is_listening, skip_for_want_of


def _driver() -> Any:
    """mysqlclient, or PyMySQL in its place; None where there is neither."""
    try:
        import MySQLdb  # noqa: PLC0415  # may be missing
    except ImportError:
        try:
            import pymysql  # noqa: PLC0415  # may be missing
        except ImportError:
            return None
        pymysql.install_as_MySQLdb()
        return pymysql
    return MySQLdb


def _address() -> str:
    """MYSQL_URL, else the usual port here; "" where nobody listens."""
    usual = "mysql://root@127.0.0.1:3306" if is_listening("127.0.0.1", 3306) else ""
    return os.environ.get("MYSQL_URL", usual)


def _without_tls(driver: Any) -> dict[str, Any]:
    """PyMySQL reads the system's certificates for every connection, which takes longer than most tests."""
    return {"ssl_disabled": True} if driver.__name__ == "pymysql" else {}


@contextmanager
def mariadb_database() -> Iterator[dict[str, Any]]:
    """A fresh database there, in the words of Django's DATABASES; dropped at the end."""
    url, driver = urlsplit(_address()), _driver()
    if url.scheme not in {"mysql", "mariadb"} or driver is None:
        skip_for_want_of("MariaDB", "set MYSQL_URL=mysql://user:password@host:port and install a driver")
    login = {"user": unquote(url.username or ""), "password": unquote(url.password or "")}
    where = {"host": url.hostname or "127.0.0.1", "port": url.port or 3306}
    name = f"catalog_fallback_{os.getpid()}_{uuid.uuid4().hex[:8]}"
    try:
        admin = driver.connect(**where, **login, **_without_tls(driver))
    except Exception as error:  # noqa: BLE001  # no login, not a MariaDB: each means "not here"
        skip_for_want_of("MariaDB", f"{type(error).__name__} at {where['host']}:{where['port']}")
        return
    try:
        admin.cursor().execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
        yield {
            "ENGINE": "django.db.backends.mysql",
            "NAME": name,
            "HOST": where["host"],
            "PORT": str(where["port"]),
            "USER": login["user"],
            "PASSWORD": login["password"],
            "OPTIONS": _without_tls(driver),
        }
    finally:
        admin.cursor().execute(f"DROP DATABASE IF EXISTS {name}")
        admin.close()
