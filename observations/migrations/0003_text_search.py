"""The words of observations, found by PostgreSQL's full text: the admin's search, and any other search by words."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """An expression index: no further column holds memory text, and erasing a text empties its entry."""

    dependencies = [("observations", "0002_integrity")]

    operations = [
        migrations.RunSQL(
            "CREATE INDEX observation_words ON observations_observation"
            " USING gin (to_tsvector('simple', coalesce(text, '')))",
            "DROP INDEX observation_words",
        ),
    ]
