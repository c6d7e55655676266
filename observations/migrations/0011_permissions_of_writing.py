"""What people may be allowed to do about what programs write. The groups that hold it are declared after each
migrate.
"""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """Names permissions; changes no table."""

    dependencies = [("observations", "0010_writing_integrity")]

    operations = [
        migrations.AlterModelOptions(
            name="intake",
            options={
                "verbose_name_plural": "intake",
                "permissions": [
                    ("set_intake", "Can set whether turns are read in the background"),
                    ("run_intake", "Can have the turns that wait read now"),
                ],
            },
        ),
        migrations.AlterModelOptions(
            name="corememory",
            options={
                "verbose_name_plural": "core memory",
                "ordering": ["label"],
                "permissions": [
                    ("edit_core", "Can edit core memory"),
                    ("set_core", "Can make core memory and set its limits"),
                ],
            },
        ),
        migrations.AlterModelOptions(
            name="token", options={"permissions": [("make_token", "Can make and revoke tokens")]}
        ),
    ]
