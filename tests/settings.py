"""With which Django settings do the tests run? SQLite in a file, LocMem, two catalogs that nobody can reach."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

#: In a file, because tests with several threads need connections of their own that see each other's commits.
TEST_DATABASE = Path(tempfile.gettempdir()) / f"catalog-fallback-tests-{os.getpid()}.sqlite3"

SECRET_KEY = "only-for-tests"
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1"]
USE_TZ = True
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
ROOT_URLCONF = "tests.urls"
STATIC_URL = "/static/"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "catalog_fallback",
    "tests.flushing",
]

MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": str(TEST_DATABASE),
        # Tests kill processes, not the machine: nobody has to wait for the disk.
        "OPTIONS": {"timeout": 20, "init_command": "PRAGMA synchronous = OFF"},
        "TEST": {"NAME": str(TEST_DATABASE)},
    }
}

CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": {"MAX_ENTRIES": 1_000_000}}
}

CATALOG_FALLBACK = {
    "default": {
        "SOURCES": {
            "primary": {"URL": "https://primary.example.com/items/{id}"},
            "secondary": {"URL": "https://secondary.example.com/items/{id}"},
        }
    }
}
