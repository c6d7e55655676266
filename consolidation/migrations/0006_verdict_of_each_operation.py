"""One verdict on a pair per operation: "all are true" that is undone must not stand in the way of a later verdict."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    """A wider key; going back fails where a pair was judged twice."""

    dependencies = [("consolidation", "0005_history_written_once")]

    operations = [
        migrations.RemoveConstraint(model_name="verdict", name="verdict_once"),
        migrations.AddConstraint(
            model_name="verdict",
            constraint=models.UniqueConstraint(fields=["scope", "low", "high", "operation"], name="verdict_once"),
        ),
    ]
