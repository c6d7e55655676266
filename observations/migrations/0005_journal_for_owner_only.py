"""Keep the functions that run as the owner to the triggers they belong to.

Whoever may execute a trigger function may put it on a table of their own, and a role may always make temporary tables:
the journal could be forged that way (I7). Triggers that exist fire without the privilege.
"""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """A privilege taken from everybody; going back gives it back."""

    dependencies = [("observations", "0004_search")]

    operations = [
        migrations.RunSQL(
            "REVOKE ALL ON FUNCTION palimpsest_observation_journal() FROM PUBLIC",
            "GRANT EXECUTE ON FUNCTION palimpsest_observation_journal() TO PUBLIC",
        ),
    ]
