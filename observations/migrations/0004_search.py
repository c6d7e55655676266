"""The index that finds an agent rows by their words: active rows only, and each entry carries its scope.

The scope is one more lexeme, '@ 12', which no text can hold (it has a space), so that a common word of a large store
costs a small scope nothing.
"""

from __future__ import annotations

from django.db import migrations

CREATE = """
CREATE INDEX observation_words_in_scope ON observations_observation USING gin (
  (to_tsvector('english', text) || array_to_tsvector(ARRAY['@ ' || scope_id::text]))
) WITH (fastupdate = off) WHERE status = 'active'
"""  # entries that wait for a vacuum would be read one by one by every word of every search


class Migration(migrations.Migration):
    """One index by hand; retrieval repeats its expression letter by letter, or PostgreSQL would not use it."""

    dependencies = [("observations", "0003_text_search")]

    operations = [migrations.RunSQL(CREATE, "DROP INDEX observation_words_in_scope")]
