"""What several independent episodes agree on becomes an observation (R45, R74-R78).

Four steps, each plain: `clusters` says which episodes of a scope are worth asking about together; `request` is the
question; `read` checks every item of the reply against the episodes; `proposals` turns what is left into operations,
and `once` keeps one of those that say the same. Support is distinct roots, never episodes (R95, C8). Nothing here
changes an episode (R78, R105).
"""

from consolidation.promote.asking import PROMPT_VERSION, request
from consolidation.promote.checking import Checked, Fact, Refusal, Support, Why, read
from consolidation.promote.cluster import Cluster, root, roots, stated_by, together
from consolidation.promote.finding import MAX_CLUSTERS, MAX_EPISODES, WINDOW, Found, clusters
from consolidation.promote.proposing import CEILING, names, once, proposals, unsupported

__all__ = [
    "CEILING",
    "MAX_CLUSTERS",
    "MAX_EPISODES",
    "PROMPT_VERSION",
    "WINDOW",
    "Checked",
    "Cluster",
    "Fact",
    "Found",
    "Refusal",
    "Support",
    "Why",
    "clusters",
    "names",
    "once",
    "proposals",
    "read",
    "request",
    "root",
    "roots",
    "stated_by",
    "together",
    "unsupported",
]
