"""With which settings does the example run? What to copy into a site of your own is at the end.

======================  =============================================================================================
``CATALOG_LIVE=1``      "books", "products" and "papers" ask the real public catalogs instead of the simulated ones
``CATALOG_CONTACT``     mail address that they are told then
``CATALOG_SERVER``      where the simulated catalogs are (``manage.py run_catalogs``)
``REDIS_URL``           cache and shared state in Redis or Valkey; otherwise in the memory of each process
``CACHE_TIMEOUT``       seconds after which that Redis counts as down (default: 0.25)
``CACHE_DIRECTORY``     cache in files: several processes on one machine, for a demonstration only
``CACHE_PREFIX``        what keys in that cache begin with
``EXAMPLE_VAR``         where everything is that is made while it runs (default: ``example_project/var``)
``EXAMPLE_DATA``        directory of the SQLite file (default: the same)
``EXAMPLE_DEBUG=0``     as in production: no buttons that break things, and a web server serves the static files
======================  =============================================================================================
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.utils.translation import gettext_lazy as _

from portal.environment import VAR, environment, notice_secret, secret_key

_environment = environment()
DATA = Path(_environment.get("EXAMPLE_DATA", VAR))

SECRET_KEY = secret_key(DATA)
DEBUG = _environment.get("EXAMPLE_DEBUG", "1") == "1"
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
ROOT_URLCONF = "portal.urls"
WSGI_APPLICATION = "portal.wsgi.application"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
#: Those that the pages are translated into; the browser chooses.
LANGUAGES = [("en", "English"), ("es", "español"), ("ja", "日本語"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [Path(__file__).resolve().parent.parent / "locale"]
STATIC_URL = "static/"
STATIC_ROOT = DATA / "static"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
X_FRAME_OPTIONS = "DENY"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.messages",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "catalog_fallback",
    "catalogs",
    "portal",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "portal.middleware.content_security_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "catalog_fallback.middleware.CatalogErrorMiddleware",
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
        "NAME": DATA / "example.sqlite3",
        "OPTIONS": {"timeout": 10},
    }
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "handlers": {"console": {"class": "logging.StreamHandler"}},
    "loggers": {"catalog_fallback": {"handlers": ["console"], "level": "INFO"}},
}


def _cache() -> dict[str, Any]:
    """Redis where there is one: what all processes of a site have to share lives here."""
    if url := _environment.get("REDIS_URL"):
        seconds = float(_environment.get("CACHE_TIMEOUT", "0.25"))
        timeouts = {"SOCKET_CONNECT_TIMEOUT": seconds, "SOCKET_TIMEOUT": seconds}
        return {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": url, "OPTIONS": timeouts}
    options = {"MAX_ENTRIES": 100_000}
    if directory := _environment.get("CACHE_DIRECTORY"):
        backend = "django.core.cache.backends.filebased.FileBasedCache"
        return {"BACKEND": backend, "LOCATION": directory, "OPTIONS": options}
    return {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "OPTIONS": options}


CACHES = {"default": {"KEY_PREFIX": _environment.get("CACHE_PREFIX", "example"), **_cache()}}

# ------------------------------------------------------------------------------------------------ catalogs

CATALOG_SERVER = _environment.get("CATALOG_SERVER", "http://127.0.0.1:8801")
CATALOG_LIVE = _environment.get("CATALOG_LIVE", "0") == "1"
CATALOG_CONTACT = _environment.get("CATALOG_CONTACT", "demo@example.com")


def _simulated(path: str, live: str | None = None) -> dict[str, str]:
    """The address of a simulated API, unless the real one is wanted: that one every adapter knows itself."""
    if CATALOG_LIVE:
        return {"URL": live} if live else {}
    return {"URL": f"{CATALOG_SERVER}{path}"}


#: What people call the catalogs.
CATALOG_NAMES = {
    "default": _("Things, by article number"),
    "shop": _("Things, with stale answers and own data"),
    "books": _("Books, by ISBN"),
    "products": _("Products, by barcode"),
    "papers": _("Papers, by DOI"),
}

CATALOG_FALLBACK = {
    # Things by article number: two sources that speak the package's own envelope.
    "default": {
        "SOURCES": {
            "primary": {"URL": f"{CATALOG_SERVER}/primary/items/{{id}}", "TIMEOUT": 1.0},
            "secondary": {"URL": f"{CATALOG_SERVER}/secondary/items/{{id}}", "TIMEOUT": 1.0},
        },
        "TTL": 60,
        "BUDGET": 3.0,
        # Deletion notices are posted to /catalog/default/notices/; a button of the demo does it.
        "NOTICE_SECRETS": [notice_secret(SECRET_KEY)],
    },
    # The same things for an impatient shop: kept for seconds, then shown stale or as the shop's own words.
    "shop": {
        "SOURCES": {
            "primary": {
                "URL": f"{CATALOG_SERVER}/primary/items/{{id}}",
                "TIMEOUT": 0.5,
                "BREAKER": {"CONSECUTIVE_FAILURES": 3, "OPEN_FOR": 10},
            },
            "secondary": {
                "URL": f"{CATALOG_SERVER}/secondary/items/{{id}}",
                "TIMEOUT": 0.5,
                "RATE_LIMIT": {"CALLS": 10, "PER": 30},
            },
        },
        "TTL": 5,
        "STALE_IF_ERROR": 30,
        "BUDGET": 1.5,
        "FALLBACK": "portal.own_data.own_words",
    },
    # Books by ISBN: openBD first, because it knows Japanese books best, then Open Library.
    "books": {
        "SOURCES": {
            "openbd": {
                "BACKEND": "catalog_fallback.sources.openbd.OpenBDSource",
                **_simulated("/v1/get?isbn={id}"),
            },
            "open_library": {
                "BACKEND": "catalog_fallback.sources.open_library.OpenLibrarySource",
                **_simulated("/api/books.json?bibkeys=ISBN:{id}&jscmd=data"),
            },
        },
        "TTL": 24 * 60 * 60,
        "CONTACT": CATALOG_CONTACT,
    },
    # Products by barcode: food first. A product that nobody has named yet is asked of the second source as well.
    "products": {
        "SOURCES": {
            "open_food_facts": {
                "BACKEND": "catalog_fallback.sources.open_food_facts.OpenFoodFactsSource",
                **_simulated("/api/v2/product/{id}"),
            },
            "open_products_facts": {
                "BACKEND": "catalog_fallback.sources.open_food_facts.OpenFoodFactsSource",
                **_simulated("/opf/api/v2/product/{id}", "https://world.openproductsfacts.org/api/v2/product/{id}"),
            },
        },
        "TTL": 7 * 24 * 60 * 60,
        "CONTACT": CATALOG_CONTACT,
    },
    # Papers by DOI: Crossref knows its own members' DOIs only, DataCite those of data sets.
    "papers": {
        "SOURCES": {
            "crossref": {
                "BACKEND": "catalog_fallback.sources.crossref.CrossrefSource",
                **_simulated("/works/{id}"),
            },
            "datacite": {
                "BACKEND": "catalog_fallback.sources.datacite.DataCiteSource",
                "RESPECT_CACHE_CONTROL": False,
                **_simulated("/dois/{id}"),
            },
        },
        "TTL": 24 * 60 * 60,
        "CONTACT": CATALOG_CONTACT,
    },
}
