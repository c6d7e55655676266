"""STORE: the only code that changes memory. Every function runs inside the caller's transaction and takes the scope's
lock.

Nothing is overwritten: a change is a new row and a move of the old one, which PostgreSQL checks and journals
(migrations/0002).
"""

from observations.normalise import key64
from observations.store.adding import (
    Fate,
    Written,
    add_episodes,
    add_evidence,
    add_evidence_to,
    add_observations,
    adopt_lineage,
    replace,
)
from observations.store.core import (
    add_core,
    drop_residue,
    edit_core,
    erase_core,
    hold_residue,
    lock_core,
    set_core,
)
from observations.store.drafting import content_hash
from observations.store.intake import (
    MAX_READINGS,
    Considered,
    RunTakenOver,
    TurnsMoved,
    add_items,
    add_unusable,
    hold_run,
    take_turns,
)
from observations.store.keys import MAX_ATTEMPTS, KeyNotGiven, adopt_keys, copy_key, put_keys, withdraw_key
from observations.store.moving import (
    Derived,
    Prior,
    ask_for_vectors,
    copy_evidence,
    erase,
    move,
    move_episodes,
    restore,
    set_validity,
    write_derived,
)
from observations.store.scopes import (
    ScopeNameRefused,
    hold_scope,
    lock_episodes,
    lock_rows,
    lock_scope,
    lock_texts,
    open_scope,
    release_scope,
)
from observations.store.vectors import EMBED, EPISODES, put_embeddings

__all__ = [
    "EMBED",
    "EPISODES",
    "MAX_ATTEMPTS",
    "MAX_READINGS",
    "Considered",
    "Derived",
    "Fate",
    "KeyNotGiven",
    "Prior",
    "RunTakenOver",
    "ScopeNameRefused",
    "TurnsMoved",
    "Written",
    "add_core",
    "add_episodes",
    "add_evidence",
    "add_evidence_to",
    "add_items",
    "add_observations",
    "add_unusable",
    "adopt_keys",
    "adopt_lineage",
    "ask_for_vectors",
    "content_hash",
    "copy_evidence",
    "copy_key",
    "drop_residue",
    "edit_core",
    "erase",
    "erase_core",
    "hold_residue",
    "hold_run",
    "hold_scope",
    "key64",
    "lock_core",
    "lock_episodes",
    "lock_rows",
    "lock_scope",
    "lock_texts",
    "move",
    "move_episodes",
    "open_scope",
    "put_embeddings",
    "put_keys",
    "release_scope",
    "replace",
    "restore",
    "set_core",
    "set_validity",
    "take_turns",
    "withdraw_key",
    "write_derived",
]
