"""What people say of objects in regions, put together again from their answers."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.seen_scores import code_of, reliable
from culturekit.verify.tables.check_inclusion import AREA, differing, rows_of

__all__ = ["check_seen_marks", "check_tasks"]


def check_tasks(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Put the answers about each item together again, those of people who did not read along left out."""
    source, items = tree.source(stage, "annotations"), tree.source(stage, "made-from")
    if source is None or items is None:
        ledger.note(AREA, stage.name, "its answers or items are not here")
        return
    said: dict[tuple[str, str, str], dict[str, tuple[Any, Any]]] = defaultdict(dict)
    for row in rows_of(source):
        if not row["flags"]:
            person = (row["item_id"], row["annotator"], row["annotator_region"])
            said[person][row["criterion"]] = (row["choice"], row["value"])
    about = {row.get("item_id") or row.get("triplet_id"): row for row in rows_of(items)}
    wanted: dict[tuple[str, str], tuple[Any, ...]] = {}
    if (stage.folder / "task2.parquet").is_file():
        for (item, who, where), told in said.items():
            if item in about and "obj" in told:
                row, seen = about[item], (ticked(told, f"{what}_regions") for what in ("object", "background"))
                wanted[item, who] = (row["object"], row["region"], where, told["obj"][0] == "ym", *seen, row["source"])
        found = {
            (row["img_path"], row["annotator_id"]): (
                row["object"], row["region"], row["annotator_loc"], row["shown"],
                tuple(sorted(row["object_regions"])), tuple(sorted(row["background_regions"])), row["source"],
            )
            for row in rows_of(stage.folder / "task2.parquet")
        }  # fmt: skip
        differing(stage, "task2", wanted, found, ledger, "answers of Task 2 put together again")
    if (stage.folder / "task1.parquet").is_file():
        kept = ("combo", "object", "region", "reference_source", "source", "reference_id", "first_id", "second_id")
        for (item, who, where), told in said.items():
            if item in about:
                chosen = (told.get(name, (None,))[0] for name in ("similar", "appealing", "confidence"))
                own = (about[item][name] for name in kept)
                wanted[item, who] = (*own, where, *chosen, shown_in(about[item], told))
        found = {
            (row["triplet_id"], row["annotator_id"]): (
                *(row[name] for name in (*kept, "annotator_loc", "similar_id", "appealing_id", "confidence")),
                None if row["shown"] is None else tuple(row["shown"]),
            )
            for row in rows_of(stage.folder / "task1.parquet")
        }  # fmt: skip
        differing(stage, "task1", wanted, found, ledger, "answers of Task 1 put together again")


def ticked(told: Mapping[str, tuple[Any, Any]], question: str) -> tuple[str, ...]:
    """List the regions that somebody ticked."""
    names = (name.split("/")[1] for name, (_, value) in told.items() if name.startswith(f"{question}/") and value == 1)
    return tuple(sorted(names))


def shown_in(item: Mapping[str, Any], told: Mapping[str, tuple[Any, Any]]) -> tuple[str, ...] | None:
    """List the images of a triplet in which somebody saw the object; None where that was not answered."""
    names = ("reference", "first", "second")
    if not any(f"shown/{name}" in told for name in names):
        return None
    return tuple(item[f"{name}_id"] for name in names if told.get(f"shown/{name}", (None, 0))[1] == 1)


def check_seen_marks(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Say again what people see in each image, those left out who do not see the objects in photographs."""
    source = tree.source(stage, "task2")
    if source is None:
        ledger.note(AREA, stage.name, "what people said is not here")
        return
    wanted: dict[tuple[str, str, str], tuple[float, bool | None]] = {}
    for row in reliable(rows_of(source), stage.manifest.options["least"]):
        key, own = (row["img_path"], row["annotator_id"]), code_of(row["region"])
        home = None if own is None else code_of(row["annotator_loc"]) == own
        wanted[*key, "object_seen"] = (float(row["shown"]), home)
        if own is not None:
            named = own in row["object_regions"] or own in row["background_regions"]
            wanted[*key, "own_region"] = (float(named), home)
    found = {(row["item_id"], row["annotator"], row["criterion"]): (row["value"], row["in_region"])
             for row in rows_of(stage.folder / "annotations.parquet")}  # fmt: skip
    differing(stage, "annotations", wanted, found, ledger, "marks of people recomputed")
