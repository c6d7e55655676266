"""Which scopes have an approximate index of their vectors: `manage.py memory index` makes it, as the owner."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A column, and no index: only a scope of more than 20,000 rows is worth one."""

    dependencies = [("observations", "0014_search")]

    operations = [
        migrations.AddField(
            model_name="scope",
            name="index_profile",
            field=models.CharField(blank=True, default="", editable=False, max_length=80),
        ),
    ]
