"""Actors on backends of their own, dawdling at statement boundaries."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from django.db import connection, connections

from tests.acceptance.boundaries import Side, watched

PAUSES = (
    0.0,
    0.0,
    0.0005,
    0.001,
    0.002,
    0.004,
)  # seconds slept at a statement boundary; drawn per boundary from a seed


def together(seed: int, *actions: Callable[[], object]) -> list[object]:
    """Run actions at once, each on a backend of its own, dawdling at seeded statement boundaries; their results in
    order.
    """
    results: list[object] = [None] * len(actions)
    pids: list[int] = []
    start = threading.Barrier(len(actions))
    draws = {f"actor-{number}": random.Random(f"{seed}/{number}") for number in range(len(actions))}

    def dawdle(statement: str, side: Side) -> None:
        mine = draws.get(threading.current_thread().name)
        if mine is not None:
            time.sleep(mine.choice(PAUSES))

    def act(number: int, action: Callable[[], object]) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
            start.wait(timeout=10)
            results[number] = action()
        except Exception as error:
            results[number] = error
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=act, args=item, name=f"actor-{item[0]}") for item in enumerate(actions)]
    with watched(dawdle):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
    assert len(set(pids)) == len(actions), "each actor needs a backend of its own"
    return results
