"""Graphs of any size in the shape of Wikidata's: few classes with most of the instances, deep chains, some cycles."""

from pathlib import Path

import numpy as np

from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, mask_of

__all__ = ["ROOTS", "make_graph"]

ROOTS = 45
"""As many as the three shipped concepts have together."""

CLASS_SHARE, SECOND_EDGES, COUNTRY_SHARE, CHAIN_SHARE, CYCLE_SHARE = 0.04, 0.1, 0.3, 0.02, 0.001
CHAIN = 60


def make_graph(folder: Path, items: int, *, seed: int = 0) -> None:
    """Write the arrays of a store, and `roots.npy`: the roots, spread over classes with few and many below them."""
    rng = np.random.default_rng(seed)
    classes = np.sort(rng.choice(items, int(items * CLASS_SHARE), replace=False))
    rng.shuffle(classes)
    keys = np.concatenate([class_edges(rng, classes), instance_edges(rng, items, classes)])
    keys.sort()
    keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    parents = (keys >> np.uint64(32)).astype(np.uint32)
    np.save(folder / "children.npy", keys.astype(np.uint32).astype(np.int32))
    del keys
    offsets = np.zeros(items + 1, np.int64)
    np.cumsum(np.bincount(parents, minlength=items), out=offsets[1:])
    np.save(folder / "children_offsets.npy", offsets)
    np.save(folder / "nodes.npy", np.arange(1, items + 1, dtype=np.uint32))
    edges = flags(rng, len(parents), EDGE_PROPERTIES)
    np.save(folder / "edge_flags.npy", edges)
    countries = flags(rng, items, COUNTRY_PROPERTIES)
    countries[rng.random(items) > COUNTRY_SHARE] = 0
    countries[classes[rng.random(len(classes)) > 0.05]] = 0
    np.save(folder / "country_flags.npy", countries)
    np.save(
        folder / "roots.npy", classes[np.unique(np.geomspace(3, len(classes) // 50, ROOTS + 5).astype(int))[:ROOTS]]
    )


def class_edges(rng: np.random.Generator, classes: np.ndarray) -> np.ndarray:
    """Hang each class below an older one, some of them in long chains, and close a few cycles."""
    size = len(classes)
    number = np.arange(1, size)
    above = (number * rng.random(size - 1) ** 1.5).astype(np.int64)
    chains = rng.integers(0, size - CHAIN, int(size * CHAIN_SHARE / CHAIN))
    linked = (chains[:, None] + np.arange(CHAIN)).reshape(-1)
    above[linked[linked < size - 1]] = linked[linked < size - 1]
    back = rng.integers(1, size, int(size * CYCLE_SHARE))
    down = np.concatenate([number, above[back - 1]])
    up = np.concatenate([above, back])
    return packed(classes[up], classes[down])


def instance_edges(rng: np.random.Generator, items: int, classes: np.ndarray) -> np.ndarray:
    """Make everything else an instance of a class, a tenth of it of two; the n-th class has a share like 1/n."""
    others = np.ones(items, np.bool_)
    others[classes] = False
    instances = np.flatnonzero(others)
    twice = np.concatenate([instances, rng.choice(instances, int(items * SECOND_EDGES))])
    rank = np.minimum(len(classes) ** rng.random(len(twice)), len(classes) - 1).astype(np.int64)
    order = rng.permutation(len(classes))
    return packed(classes[order[rank]], twice)


def packed(parents: np.ndarray, children: np.ndarray) -> np.ndarray:
    """Put an edge into one number that sorts by parent, then child."""
    return (parents.astype(np.uint64) << np.uint64(32)) | children.astype(np.uint64)


def flags(rng: np.random.Generator, size: int, family: tuple[str, ...]) -> np.ndarray:
    """Draw flags: mostly best rank and not ended, one in fifty deprecated or ended."""
    kinds = [mask_of((name,), family, ranks="truthy", ended="drop") for name in family]
    drawn = np.array(kinds, np.uint16)[rng.integers(0, 2, size, dtype=np.int8)]
    odd = rng.integers(0, size, size // 50)
    drawn[odd] <<= rng.integers(0, 6, len(odd)).astype(np.uint16)
    return drawn
