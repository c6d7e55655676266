"""A store that grows session by session, twice from one seed: consolidated by people who know the truth, and left
alone. It shows whether consolidation keeps memory small and findable (R26, R114, R115); `manage.py simulate` is its
doorway, and it writes only into a database that was made to be thrown away.
"""

from consolidation.simulation.picture import about, picture
from consolidation.simulation.running import NotThrowaway, Point, Simulated, simulate
from consolidation.simulation.telling import document, table

__all__ = ["NotThrowaway", "Point", "Simulated", "about", "document", "picture", "simulate", "table"]
