"""A trail in lines of text."""

from collections.abc import Iterator

from culturekit.trail.evidence import PathNode, Said
from culturekit.trail.walk_back import Trail

__all__ = ["trail_lines"]

SHOWN_OF_LINE = 400
"""How many characters of a dump line are printed; `--json` gives all."""


def trail_lines(trail: Trail) -> Iterator[str]:
    """Tell a trail from the score down to the dump."""
    score = trail.score
    yield f"score      {score['metric']} = {score['value']:.4f}{interval_text(trail)}, n = {score['n']} images"
    yield f"           model {score['model']}, concept {score['concept']}, {score['params']}"
    yield f"batch      {len(trail.batch)} images: {' '.join(trail.batch)}"
    yield f"image      {trail.image_id}  {trail.image}"
    yield f"prompt     {trail.prompt}"
    if not trail.neighbours:
        yield "shows      no artifact: the image is culture-free"
    for near in trail.neighbours:
        yield f"nearest {near.rank}  {near.score:.4f}  {near.artifact} ({near.artifact_id}, {near.country})"
    if trail.evidence is not None:
        yield f"artifact   {trail.evidence.name} ({trail.evidence.artifact_id}) in {trail.evidence.concept}"
        for node in trail.evidence.path:
            yield f"  path     {node_text(node)}"
        for said in trail.evidence.countries:
            yield f"  country  {said_text(said)}"
    if trail.dump_line is not None:
        rest = "" if len(trail.dump_line) <= SHOWN_OF_LINE else f" ... ({len(trail.dump_line):,} characters)"
        yield f"dump       {trail.dump_line[:SHOWN_OF_LINE]}{rest}"


def interval_text(trail: Trail) -> str:
    """Write the interval, where there is one."""
    low, high = trail.score["ci_low"], trail.score["ci_high"]
    return "" if low is None or high is None else f" [{low:.4f}, {high:.4f}]"


def node_text(node: PathNode) -> str:
    """Write an item of the path, what it says of the one before it, and its place."""
    said = "; ".join(said_text(statement) for statement in node.said)
    place = f"  <- {node.place}" if node.place else "  (only mentioned in the dump)"
    return f"{node.qid} {node.label}{f': {said}' if said else ''}{place}"


def said_text(said: Said) -> str:
    """Write a statement."""
    rank = "" if said.rank == "normal" else f", {said.rank}"
    return f"{said.property} {said.value} {said.value_label}{rank}"
