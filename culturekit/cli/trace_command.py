"""`culturekit trace`: a score walked back, in lines of text."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import typer

from culturekit.cli.options import AsJson
from culturekit.cli.showing import show
from culturekit.core.errors import UsageError
from culturekit.kg.countries import QID
from culturekit.trail.evidence import ArtifactEvidence, EvidenceTables, PathNode, Statement, verdict_lines
from culturekit.trail.numbers import NumberWalk, number_lines
from culturekit.trail.space_causes import space_file
from culturekit.trail.walk_back import Trail, find_score, is_mapped, people_lines, walk_back, walk_images

SHOWN_OF_LINE = 400  # How many characters of a dump line are printed; `--json` gives all


def trace(
    score: Annotated[
        str,
        typer.Argument(
            help="RUN/FOLDER#ROW, RUN?metric=vs&model=NAME&concept=NAME&kernel=NAME, or an artifact: RUN#Q13276."
        ),
    ],
    image: Annotated[str | None, typer.Option(help="Walk by this image. [the first one of the score]")] = None,
    images: Annotated[
        int, typer.Option(min=1, max=1000, help="Walk by so many images, from the score's first repeat to its last.")
    ] = 1,
    as_json: AsJson = False,
) -> None:
    """Walk one score back, from images to lines of the dump.

    In between: neighbours with margins, artifact, path of QIDs. A score that is no count of artifacts ends at images
    with the replies of judges, people's answers, prompts and pages. An artifact of a cultural space is walked back to
    what made it one: path, verdicts, or the proposal of a model.
    """
    location, _, named = score.partition("#")
    if any(QID.match(text) or text.startswith("LLM:") for text in (named, score)):
        if image is not None or images > 1:
            raise UsageError("--image and --images belong to a score, not to an artifact", found=score)
        trace_artifact(location, named, as_json=as_json)
        return
    if image is not None and images > 1:
        raise UsageError("--image names one image, --images asks for several", expected="one of the two")
    folder, row = find_score(score)
    if not is_mapped(folder):  # by values, images, replies and answers
        number = NumberWalk(folder).trail(row, image_id=image, count=images)
        show(number, (*score_lines(row), *number_lines(number)), as_json=as_json)
        return
    trails = walk_images(folder, row, count=images) if images > 1 else [walk_back(folder, row, image_id=image)]
    first, *others = trails
    more = (line for trail in others for line in ("", *image_lines(trail)))
    show({**asdict(first), "more": others}, (*trail_lines(first), *more), as_json=as_json)


def trace_artifact(location: str, artifact_id: str, *, as_json: bool) -> None:
    """Walk an artifact of a cultural space back."""
    if not artifact_id:
        raise UsageError(
            "an artifact is walked back from where it was released", found=location,
            expected=f"RUN#{location}, where RUN is the folder of a run or a release",
        )  # fmt: skip
    folder = space_file(Path(location)).parent
    tables = EvidenceTables(folder)
    rows = tables.space.filter(pl.col("artifact_id") == artifact_id)
    explain = "" if tables.published else f"culturekit kg explain {artifact_id} --graph {tables.graph} --roots CONCEPT"
    if rows.is_empty():
        why = f"`{explain}` says why." if explain and QID.match(artifact_id) else ""
        raise UsageError("no such artifact in the cultural space", where=str(folder), found=artifact_id, hint=why)
    concepts = rows["concept"].unique().sort().to_list()
    found = tables.evidence_of((artifact_id, concept) for concept in concepts)
    judged = {key: tables.verdicts(evidence) for key, evidence in found.items()}
    lines: list[str] = []
    for key, evidence in sorted(found.items()):
        released = rows.filter(concept=key[1]).sort("country_order" if "country_order" in rows.columns else "country")
        lines += [f"released   in {', '.join(released['country_name'])}", *evidence_lines(evidence)]
        lines += verdict_lines(judged[key])
        if explain and QID.match(artifact_id):
            lines.append(f"explain    {explain.replace('CONCEPT', key[1])}")
    show([{**asdict(found[key]), "judged": judged[key]} for key in sorted(found)], lines, as_json=as_json)


def evidence_lines(evidence: ArtifactEvidence) -> Iterator[str]:
    """Tell why something is an artifact."""
    yield f"artifact   {evidence.name} ({evidence.artifact_id}) in {evidence.concept}"
    for node in evidence.path:
        yield f"  path     {node_text(node, evidence.published)}"
    if evidence.published:
        yield f"  source   {evidence.published}, a published cultural space: no dump was read"
    for one in evidence.countries:
        yield f"  country  {statement_text(one)}"


def trail_lines(trail: Trail) -> Iterator[str]:
    """Tell a trail from the score down to the dump."""
    shown = trail.behind
    yield from score_lines(trail.score, "images")
    yield f"behind     {shown.images:,} images; prompts: {shown.prompts:,}"
    if shown.artifacts:
        yield f"           most often {', '.join(f'{name} ({qid}) {count:,}' for qid, name, count in shown.artifacts)}"
        yield f"           in {', '.join(f'{country} {count:,}' for country, count in shown.countries)}"
    if trail.people is not None:
        yield from people_lines(trail.people)
    yield from image_lines(trail)


def score_lines(score: Mapping[str, Any], of: str = "") -> Iterator[str]:
    """Tell a score, what it is of, and how it was made."""
    from culturekit.report.run_folders import ALIKE

    value, low, high = score["value"], score["ci_low"], score["ci_high"]
    found = "not defined" if value is None else f"{value:.4f}"
    interval = "" if None in (low, high) else f" [{low:.4f}, {high:.4f}{f': {ALIKE}' if low == high else ''}]"
    yield f"score      {score['metric']} = {found}{interval}, n = {score['n']} {of}".rstrip()
    named = ("model", "concept", "country", "group")
    scope = ", ".join(f"{name} {score[name]}" for name in named if score[name] is not None)
    yield f"           {scope}, {score['params']}"


def image_lines(trail: Trail) -> Iterator[str]:
    """Tell a trail from one image down to the dump."""
    yield f"batch      {len(trail.batch)} images: {' '.join(trail.batch)}"
    yield f"image      {trail.image_id}  {trail.image}"
    yield f"prompt     {trail.prompt}"
    yield from answer_lines(trail)
    if not trail.neighbours:
        yield "shows      no artifact: the image is culture-free"
    for near in trail.neighbours:
        found = f"  <- {near.place}" if near.place else ""
        yield (
            f"nearest {near.rank}  {near.score:.4f}  {near.artifact} ({near.artifact_id}, {near.country}), "
            f"lead {near.margin:+.4f}, over other countries {near.country_margin:+.4f}{found}"
        )
    if trail.evidence is not None:
        yield from evidence_lines(trail.evidence)
    yield from verdict_lines(trail.verdicts)
    if trail.dump_line is not None:
        rest = "" if len(trail.dump_line) <= SHOWN_OF_LINE else f" ... ({len(trail.dump_line):,} characters)"
        yield f"dump       {trail.dump_place}"
        yield f"           {trail.dump_line[:SHOWN_OF_LINE]}{rest}"


def answer_lines(trail: Trail) -> Iterator[str]:
    """Tell what people said of the image, and for which others."""
    people, image = trail.people, trail.image_id
    if people is None or image not in people.answers:
        return
    for answer in people.answers[image]:
        named = [answer.artifact_id, answer.country, answer.continent]
        yield f"said       {answer.annotator} ({answer.pool}): {', '.join(filter(None, named)) or answer.said}"
    cell = people.cell_of(image)
    if cell is not None:
        yield (
            f"speaks for {people.weights[image]:.1f} images of its concept; one of {len(cell.audited):,} looked at of "
            f"{cell.images:,} mapped to {cell.label}"
        )


def node_text(node: PathNode, published: str = "") -> str:
    """Write an item of the path, what it says of the one before it, and its place."""
    stated = "; ".join(statement_text(statement) for statement in node.said)
    index = f"  <- {node.place}" if node.place else "" if published else "  (only mentioned in the dump)"
    return f"{node.qid} {node.label}{f': {stated}' if stated else ''}{index}"


def statement_text(one: Statement) -> str:
    """Write a statement."""
    rank = "" if one.rank == "normal" else f", {one.rank}"
    return f"{one.property} {one.value} {one.value_label}{rank}"
