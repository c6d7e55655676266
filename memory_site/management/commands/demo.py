"""`demo`: memory, people and a plan to look at."""

from __future__ import annotations

import os
from pathlib import Path

from django.core.management.base import BaseCommand

from memory_site.demo.loading import load


class Command(BaseCommand):
    """One call: loads what is missing and prints the logins."""

    help = "Loads the demo's memory, people and policies, and makes a plan. Doing it again adds nothing."

    def handle(self, *args: object, **options: object) -> None:
        """Writes into the store of DATABASE_URL, or the embedded one."""
        home = os.environ.get("PALIMPSEST_HOME")
        loaded = load(say=self.stdout.write, home=Path(home) if home else None)
        self.stdout.write(
            f"{loaded.observations} observations and {loaded.episodes} episodes in four scopes ({loaded.added} new); "
            f"{loaded.plan} waits for review."
        )
        self.stdout.write(loaded.policies)
        if not home:
            self.stdout.write(loaded.logins)
