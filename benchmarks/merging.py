"""What may merge by itself, on every labelled pair and on dated facts: `make bench-merge`.

    python -m benchmarks.merging [--data DIR] [--embedder minilm --embedder hashing] [--sample 40 | --store]

The verdict is the rule that planning uses (consolidation.merge.judge) on two rows of one scope, without keys, under
the default policy with unlimited reviews. A sample of every file, or with --store all of it, also goes through the
store and the real planner, which must say the same. Queued means: a merge that a person decides, or a skip that a
person is shown. A false automatic is a pair that would merge by itself although it is not labelled a duplicate; each is
printed with its file, line and texts.

Exit status 1: a false automatic that benchmarks/label_noise.py does not excuse, a merge of two different objects of one
key, a change of value that nobody is asked about, or a pair on which rule and planner differ. 2: no data, no embedder.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import Final

from benchmarks import facts, pairs
from benchmarks.label_noise import excuse
from benchmarks.pairs import DUPLICATE, KEYLESS, Pair
from benchmarks.stage import DATA, stage, table
from consolidation.policy import Policy
from observations.embedding import Embedder, EmbeddingError, embedder

EMBEDDERS: Final = ("minilm", "hashing")
HEADS: Final = (
    "file", "embedder", "pairs", "duplicates", "recall automatic", "recall automatic or queued", "false automatic",
    "rate", "at most (95%)",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table: the pairs of one file, or its surface variants, with one embedder."""

    name: str
    embedder: str
    words: Counter[tuple[bool, str]]  # whether labelled duplicate, outcome
    false: tuple[Pair, ...]
    surface: bool = False  # a part of another row

    @property
    def duplicates(self) -> int:
        return sum(count for (duplicate, _), count in self.words.items() if duplicate)

    @property
    def others(self) -> int:
        """Pairs that are no duplicates."""
        return self.words.total() - self.duplicates

    def recall(self, *outcomes: str) -> float:
        """The share of the duplicates that had one of these outcomes."""
        return sum(self.words[True, outcome] for outcome in outcomes) / max(1, self.duplicates)

    def cells(self) -> list[object]:
        """The line as the table shows it."""
        found = [f"{self.recall('automatic'):.1%}", f"{self.recall('automatic', 'queued'):.1%}"]
        wrong = [f"{len(self.false) / max(1, self.others):.2%}", f"{wilson(len(self.false), self.others):.2%}"]
        return [
            self.name, self.embedder, self.words.total(), self.duplicates,
            *(found if self.duplicates else ["-", "-"]), len(self.false), *(wrong if self.others else ["-", "-"]),
        ]  # fmt: skip


def wilson(hits: int, trials: int, *, z: float = 1.96) -> float:
    """The upper bound of the 95% score interval of a share (Wilson 1927); 1 without trials."""
    if not trials:
        return 1.0
    share, width = hits / trials, z * z / trials
    spread = z * sqrt(share * (1 - share) / trials + width / (4 * trials))
    return min(1.0, (share + width / 2 + spread) / (1 + width))


def row(name: str, judged: Sequence[tuple[Pair, str]], *, embedder: str, surface: bool = False) -> Row:
    """The line of some judged pairs."""
    words = Counter((pair.label == DUPLICATE, word) for pair, word in judged)
    false = tuple(pair for pair, word in judged if word == "automatic" and pair.label != DUPLICATE)
    return Row(name, embedder, words, false, surface)


def rows(read: Sequence[Pair], words: Sequence[str], *, embedder: str) -> Iterator[Row]:
    """The line of a file; surface variants, which must be found, have one of their own as well."""
    judged = list(zip(read, words, strict=True))
    yield row(read[0].file, judged, embedder=embedder)
    if surface := [(pair, word) for pair, word in judged if pair.kind == "surface"]:
        yield row(f"{read[0].file}: surface", surface, embedder=embedder, surface=True)


@dataclass(slots=True)
class Run:
    """What one embedder's pairs came to."""

    rows: list[Row]
    words: dict[tuple[str, int], str]  # (file, line) -> outcome by the rule
    seconds: float


def judged(data: Path, *, embed: Embedder) -> Run:
    """Every pair of the folder by the rule, one file after the other."""
    policy, run, began = Policy(review_budget=None), Run([], {}, 0.0), time.perf_counter()
    for read in pairs.read(data, embed=embed):
        words = [pairs.verdict(pair, key=KEYLESS, profile=embed.profile, policy=policy).word for pair in read]
        run.words |= {(pair.file, pair.line): word for pair, word in zip(read, words, strict=True)}
        run.rows += rows(read, words, embedder=embed.profile.name) if read else ()
    run.seconds = time.perf_counter() - began
    return run


def explained(false: Sequence[Pair]) -> tuple[list[str], bool]:
    """Each false automatic in full with its excuse, and whether every one has an excuse."""
    lines: list[str] = []
    clean = True
    for pair in false:
        reason = excuse(pair.id, pair.a, pair.b)
        clean = clean and bool(reason)
        lines.append(f"{pair.file}:{pair.line} ({pair.label}): {reason or 'WRONG, and not excused'}")
        lines += [f"  {pair.a}", f"  {pair.b}"]
    return lines, clean


def of_facts(path: Path, *, embed: Embedder) -> tuple[list[str], bool]:
    """What a plan makes of the dated facts, and whether it merged no two values and asked about every change."""
    found = facts.measure(facts.records(path), embed=embed)
    across = [f"  MERGED: {' | '.join(texts)}" for texts in found.across]
    lines = [
        f"{path.name}, {embed.profile.name}: {found.rows} rows in one scope, {found.keys} keys, {found.seconds:.1f} s",
        f"  automatic merges {found.merges}, across different objects {len(found.across)}"
        f" (offered to a person: {found.offered})",
        f"  changes of value {found.changes}, of which a person is asked about {found.proposed}",
    ]
    return lines + across, not across and found.proposed == found.changes


def through_the_store(data: Path, words: dict[tuple[str, int], str], *, share: int | None) -> tuple[list[str], bool]:
    """The planner on `share` pairs of every file, evenly taken (None: all), beside the rule's words."""
    from benchmarks import planned_pairs

    lines: list[str] = []
    agreed = True
    for path in sorted(data.glob("pairs_*.jsonl")):
        every = planned_pairs.read(path)
        taken = range(0, len(every), 1 if share is None else max(1, -(-len(every) // share)))
        file = planned_pairs.through_the_store(path.stem, [every[at] for at in taken])
        differ = [
            f"  {path.name}:{at + 1}: rule {words[path.name, at + 1]}, planner {outcome}"
            for at, outcome in zip(taken, file.outcomes, strict=True)
            if words[path.name, at + 1] != ("missed" if outcome == "skipped" else outcome)
        ]
        lines.append(
            f"{path.name}: {len(taken)} of {len(every)} pairs in {len(taken)} scopes of 2 rows,"
            f" {sum(file.seconds):.1f} s, {len(differ)} unlike the rule"
        )
        lines += differ
        agreed = agreed and not differ
    return lines, agreed


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and all that stands against it; the exit status is the module's."""
    options = _options(argv)
    if not any(options.data.glob("pairs_*.jsonl")):
        print("There are no pairs_*.jsonl files: name their folder with --data or PALIMPSEST_DATA.", file=sys.stderr)
        return 2
    try:
        return int(not _measured(options))
    except EmbeddingError as error:
        print(error, file=sys.stderr)
    except (OSError, ValueError, KeyError) as error:
        print(f"A data file cannot be read ({error}): correct it, or name another folder.", file=sys.stderr)
    return 2


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.merging", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the data files")
    parser.add_argument("--embedder", choices=EMBEDDERS, action="append", help="only this one; may be given again")
    parser.add_argument("--sample", type=int, default=40, help="pairs of each file that go through the store (0: none)")
    parser.add_argument("--store", action="store_true", help="every pair goes through the store")
    return parser.parse_args(argv)


def _measured(options: argparse.Namespace) -> bool:
    """Whether nothing stands against the merges."""
    clean: list[bool] = []
    runs: dict[str, Run] = {}
    for name in options.embedder or EMBEDDERS:
        embed = embedder(name)
        runs[name] = run = judged(options.data, embed=embed)
        print(
            f"{name}: {2 * len(run.words):,} rows of {embed.profile.dimensions} dimensions in {len(run.words):,} scopes"
            f" of 2, {run.seconds:.1f} s; candidates from {embed.profile.t_candidate:g}",
            flush=True,
        )
    print("\n" + table(HEADS, [line.cells() for run in runs.values() for line in run.rows]) + "\n", flush=True)
    for name, run in runs.items():
        lines, excused = explained([pair for line in run.rows if not line.surface for pair in line.false])
        _say(f"False automatic, {name}: {len(lines) // 3}", lines)
        clean.append(excused)
    path = options.data / facts.FILE
    for name in runs if path.exists() else ():
        lines, held = of_facts(path, embed=embedder(name))
        _say("", lines)
        clean.append(held)
    if options.store or options.sample > 0:
        clean.append(_planned(options, runs))
    return all(clean)


def _planned(options: argparse.Namespace, runs: dict[str, Run]) -> bool:
    name, run = next(iter(runs.items()))
    with stage(durable=False, embedder=name):
        lines, agreed = through_the_store(options.data, run.words, share=None if options.store else options.sample)
    _say(f"\nThrough the store and the planner, {name}", lines)
    return agreed


def _say(title: str, lines: Sequence[str]) -> None:
    print("\n".join([title, *lines] if title else lines), flush=True)


if __name__ == "__main__":
    sys.exit(main())
