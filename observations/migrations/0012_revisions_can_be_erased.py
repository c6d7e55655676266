"""The trigger of core revisions names the column "by" in quotes: PL/pgSQL reserves the word, and every erase failed."""

from __future__ import annotations

from django.db import migrations


def function(by: str) -> str:
    """The trigger's function, with the column written so."""
    return f"""
CREATE OR REPLACE FUNCTION palimpsest_core_revision_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.value IS NOT NULL
     OR (NEW.id, NEW.scope_id, NEW.core_id, NEW.number, NEW.action, NEW.undoes, NEW.{by}, NEW.at)
        IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.core_id, OLD.number, OLD.action, OLD.undoes, OLD.{by}, OLD.at) THEN
    RAISE EXCEPTION 'a revision of core memory is written once' USING ERRCODE = 'PA003';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    """Changes a function and no table."""

    dependencies = [("observations", "0011_permissions_of_writing")]

    operations = [migrations.RunSQL(function('"by"'), function("by"))]
