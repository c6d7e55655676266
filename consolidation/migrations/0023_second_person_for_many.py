"""What is approved together and goes over the blast radius of a scope needs a second person there."""

from __future__ import annotations

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    """Forward on any data: what was asked for before counts as not reckoned. Backward drops only what this adds; an
    operation keeps that it needs a second person.
    """

    dependencies = [("consolidation", "0022_queue_health")]

    operations = [
        migrations.AddField(
            model_name="bulkdecision",
            name="wide",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.BigIntegerField(), blank=True, null=True, size=None
            ),
        ),
    ]
