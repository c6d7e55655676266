"""Settings, read from the environment (see .env.example). Defaults are safe for a first run on one machine.

The application connects as the lesser role of DATABASE_URL; migrations connect as the owner of MIGRATE_DATABASE_URL.
"""

from __future__ import annotations

from pathlib import Path

import environ

from memory_site.database_url import django_database
from memory_site.logs import configure as configure_logs
from memory_site.logs import formatter

BASE_DIR = Path(__file__).resolve().parent.parent

env = environ.Env()
env.read_env(BASE_DIR / ".env", overwrite=False)

DEBUG = env.bool("DEBUG", default=False)
SECRET_KEY = env.str("SECRET_KEY", default="")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "[::1]"])
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])

INSTALLED_APPS = [
    "memory_site.apps.MemorySiteConfig",
    "memory_site.apps.PalimpsestAdminConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django_celery_beat",
    "axes",
    "csp",
    "django_structlog",
    "observations.apps.ObservationsConfig",
    "consolidation.apps.ConsolidationConfig",
]

MIDDLEWARE = [
    "observations.api.doorway.ForPrograms",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_structlog.middlewares.RequestMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "memory_site.urls"
WSGI_APPLICATION = "memory_site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "libraries": {"texts": "consolidation.admin.texts"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "consolidation.admin.context.standing",
            ],
        },
    },
]

DATABASES = {
    "default": django_database(env.str("DATABASE_URL", default="postgresql://palimpsest_app@localhost/palimpsest"))
}
# A thread of the web server keeps its connection for a minute: making one takes longer than most requests. Workers give
# theirs back after each task.
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}
APPLICATION_ROLE = str(DATABASES["default"].get("USER", ""))  # kept apart: `migrate` swaps the connection's own user
MIGRATE_DATABASE_URL = env.str("MIGRATE_DATABASE_URL", default="")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

AUTHENTICATION_BACKENDS = ["axes.backends.AxesStandaloneBackend", "django.contrib.auth.backends.ModelBackend"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AXES_FAILURE_LIMIT = 10
AXES_COOLOFF_TIME = 0.25  # hours
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False
AXES_LOCKOUT_TEMPLATE = "admin/locked.html"
AXES_ENABLE_ADMIN = False  # its lists show what strangers typed as it stands; `axes_reset_username` opens a name

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = True

STATIC_URL = "static/"
STATIC_ROOT = env.str("STATIC_ROOT", default="") or None  # where collectstatic writes, for a proxy to serve
WHITENOISE_USE_FINDERS = True  # one machine serves its own files; no collectstatic step before the first page
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}

# Memory text is hostile: nothing but our own files may run, be framed or be posted to (INTEGRITY part 4).
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "frame-ancestors": ["'none'"],
        "form-action": ["'self'"],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SAMESITE = "Lax"
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 5_000  # a selection of 1,500 items in one form (H2)
BEHIND_PROXY = env.bool("BEHIND_PROXY", default=False)  # what it says of scheme and address is believed
SECURE_TLS = env.bool("SECURE_TLS", default=False)  # on behind HTTPS: secure cookies, HSTS, redirect
if SECURE_TLS:
    SECURE_SSL_REDIRECT = True
    SECURE_REDIRECT_EXEMPT = [r"^healthz$"]  # probes ask inside, over plain HTTP
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SECURE_HSTS_INCLUDE_SUBDOMAINS = True
    SECURE_HSTS_PRELOAD = True
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if BEHIND_PROXY else None

# The API: requests a minute of one token, and of one address without a valid one. 0 is no limit; without a broker none
# is kept.
PALIMPSEST_API_REQUESTS_PER_MINUTE = env.int("PALIMPSEST_API_REQUESTS_PER_MINUTE", default=1_200)
PALIMPSEST_API_FAILURES_PER_MINUTE = env.int("PALIMPSEST_API_FAILURES_PER_MINUTE", default=60)

# The queue. A message is only a wake-up: work is a row in the outbox, so nothing is kept in results and a dead broker
# delays nobody (STACK: settings for redelivery and stopping).
CELERY_BROKER_URL = env.str("REDIS_URL", default="redis://localhost:6379/0")
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_TASK_TIME_LIMIT = 600
CELERY_TASK_SOFT_TIME_LIMIT = 540
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 900,
    "unacked_restore_throttle": 1,
    "socket_connect_timeout": 0.3,
    "socket_timeout": 5,
    "max_retries": 0,
}
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None  # a worker waits for its broker for as long as that takes
CELERY_RESULT_EXPIRES = None  # no results, so no entry of Celery's own in the schedule to clean them up
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = 10
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "django_celery_beat.schedulers:DatabaseScheduler"

# Who is mailed when a rule loses its automatic status, and through which server; nobody by default.
ADMINS = [(address, address) for address in env.list("PALIMPSEST_MAIL_TO", default=[])]
vars().update(env.email_url("PALIMPSEST_MAIL_URL", default="dummymail://"))
EMAIL_TIMEOUT = 10

# The language model: without a key, what needs one does not run and says so.
ANTHROPIC_API_KEY = env.str("ANTHROPIC_API_KEY", default="")
ANTHROPIC_BASE_URL = env.str("ANTHROPIC_BASE_URL", default="")  # any endpoint that speaks the Messages API
PALIMPSEST_MODEL = env.str("PALIMPSEST_MODEL", default="claude-haiku-5-5")
PALIMPSEST_MODEL_TIMEOUT_SECONDS = env.float("PALIMPSEST_MODEL_TIMEOUT_SECONDS", default=30.0)
PALIMPSEST_MODEL_RETRIES = env.int("PALIMPSEST_MODEL_RETRIES", default=3)
PALIMPSEST_MODEL_PRICES = env.str("PALIMPSEST_MODEL_PRICES", default="")  # "input,output" in dollars per million tokens
PALIMPSEST_MODEL_DEBUG = env.bool("PALIMPSEST_MODEL_DEBUG", default=False)  # questions and answers go to the log
# Which model selects among episodes for a prompt (empty: the same), and the seconds it has: inside the one second that
# our client gives a whole call, so that the rule can still answer.
PALIMPSEST_SELECT_MODEL = env.str("PALIMPSEST_SELECT_MODEL", default="")
PALIMPSEST_SELECT_SECONDS = env.float("PALIMPSEST_SELECT_SECONDS", default=0.6)
PALIMPSEST_BUDGET_DOLLARS_PER_DAY = env.float("PALIMPSEST_BUDGET_DOLLARS_PER_DAY", default=5.0)
PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = env.float("PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY", default=1.0)

# Which embedder reads and plans; a row's vector under another profile is refused, never compared (DESIGN 3).
PALIMPSEST_EMBEDDER = env.str("PALIMPSEST_EMBEDDER", default="minilm")
PALIMPSEST_EMBEDDINGS_URL = env.str("PALIMPSEST_EMBEDDINGS_URL", default="")
PALIMPSEST_EMBEDDINGS_KEY = env.str("PALIMPSEST_EMBEDDINGS_KEY", default="")
PALIMPSEST_EMBEDDINGS_MODEL = env.str("PALIMPSEST_EMBEDDINGS_MODEL", default="")
PALIMPSEST_EMBEDDINGS_DIMENSIONS = env.int("PALIMPSEST_EMBEDDINGS_DIMENSIONS", default=0)

# What counts beside a cosine of 1 when a search ranks: all words of the query, its naming of a row's subject; and the
# share of its score that a row loses as it fades (docs/decisions/0005, 0010 and 0020).
PALIMPSEST_SEARCH_WORDS = env.float("PALIMPSEST_SEARCH_WORDS", default=0.35)
PALIMPSEST_SEARCH_SUBJECT = env.float("PALIMPSEST_SEARCH_SUBJECT", default=0.35)
PALIMPSEST_SEARCH_FADING = env.float("PALIMPSEST_SEARCH_FADING", default=0.1)

configure_logs()
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": formatter, "json": env.str("LOG_FORMAT", default="text") == "json"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": env.str("LOG_LEVEL", default="INFO")},
}
