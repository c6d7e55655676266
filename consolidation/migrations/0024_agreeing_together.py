"""A second person may agree to many approvals at once, each of them shown in full."""

from __future__ import annotations

from django.db import migrations, models

ASKED = ("approve", "reject", "distinct", "defer", "second")


class Migration(migrations.Migration):
    """Forward on any data: the rule only widens. Backward is refused by PostgreSQL, with nothing changed, once somebody
    agreed so: such a decision is never deleted, and the version before could not read it.
    """

    dependencies = [("consolidation", "0023_second_person_for_many")]

    operations = [
        migrations.RemoveConstraint(model_name="bulkdecision", name="bulk_verb"),
        migrations.AlterField(
            model_name="bulkdecision",
            name="verb",
            field=models.CharField(choices=[(word, word) for word in ASKED], max_length=8),
        ),
        migrations.AddConstraint(
            model_name="bulkdecision",
            constraint=models.CheckConstraint(condition=models.Q(("verb__in", ASKED)), name="bulk_verb"),
        ),
    ]
