"""`migrate` as the owner: the application's role may not create, alter or drop anything."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.commands.migrate import Command as DjangoMigrate
from django.db import connections

from memory_site.database_url import django_database


class Command(DjangoMigrate):
    """Django's migrate, connected with MIGRATE_DATABASE_URL where that is set."""

    help = "Brings the database's schema up to date, as the owner (MIGRATE_DATABASE_URL, else DATABASE_URL)."

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Runs Django's migrate on the owner's connection."""
        if settings.MIGRATE_DATABASE_URL:
            connection = connections[options["database"]]
            connection.close()
            connection.settings_dict.update(django_database(settings.MIGRATE_DATABASE_URL))
        super().handle(*args, **options)
