"""What people may be allowed to do beyond looking. The groups that hold it are declared after each migrate."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """Names permissions; changes no table."""

    dependencies = [("consolidation", "0003_schedule")]

    operations = [
        migrations.AlterModelOptions(
            name="operation",
            options={
                "permissions": [
                    ("review_operation", "Can approve, reject and tell apart"),
                    ("apply_operation", "Can apply and undo"),
                ]
            },
        ),
        migrations.AlterModelOptions(name="plan", options={"permissions": [("make_plan", "Can plan now")]}),
        migrations.AlterModelOptions(
            name="pause", options={"permissions": [("pause", "Can pause and resume planning and applying")]}
        ),
    ]
