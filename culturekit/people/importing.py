"""From exports to tables: annotations, what they are about, checks, audits, and what was set aside."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from culturekit.builders.country_names import country_code, folded
from culturekit.core.choices import CANNOT_TELL, NO_CULTURE, NOT_IN_LIST
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import (
    ANNOTATION_CHECKS,
    ANNOTATION_KEY,
    ANNOTATIONS,
    AUDITS,
    QUARANTINE,
    RATED_ITEMS,
    RATERS,
)
from culturekit.core.stage import Outcome, Work
from culturekit.core.table import Table
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import countries
from culturekit.people.answers import (
    Answered,
    ImportedAnswers,
    KeyRow,
    TaskRecord,
    annotation_rows,
    meaning,
    meanings_of,
    read_export,
    read_exports,
    served_answers,
)
from culturekit.people.export import PROJECT_FILE
from culturekit.people.scheme import Scheme, of_pictures
from culturekit.people.tasks import Item, Offer, items_of_rows, lookalikes
from culturekit.scores.answers import (
    ATTENTION,
    COPIED,
    FLAGS,
    INCONSISTENT,
    TOO_FAST,
    TRIAL_FAILED,
    copies_flagged,
    raters_of,
    who_counted,
)
from culturekit.scores.family import own_generator

TRIAL, GOLD = "trial", "gold"  # the kinds of tasks whose answers are known
PARTED = " | "  # what stands between several answers to one question


def known_items(rows: pl.DataFrame, images: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make items of rows that have, besides what the form shows, a column of right answers for some questions.

    A picture that is right goes by its name in the scheme, an option of an item's own by its text; several are parted
    by a bar. An empty cell leaves a question free.
    """
    asked = [one.name for one in scheme.criteria if one.name in rows.columns and one.type != "text"]
    items = items_of_rows(rows, images, scheme, left_out)
    key = next(name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns)
    right = {
        str(row[key]): {name: PARTED.join(sorted(part.strip() for part in str(row[name]).split("|")))
                        for name in asked if str(row[name] or "").strip()}
        for row in rows.iter_rows(named=True)
    }  # fmt: skip
    free = next((item.item_id for item in items if not right[item.item_id]), None)
    if free is not None:
        raise UsageError(
            "nobody knows what is right of a gold item", where=f"item {free!r}", found=", ".join(rows.columns),
            expected=f"a cell under one of {', '.join(one.name for one in scheme.criteria if one.type != 'text')}",
        )  # fmt: skip
    return [replace(item, known=right[item.item_id]) for item in items]


def held(answered: Answered, row: KeyRow, scheme: Scheme) -> Iterator[tuple[str, str, str, bool]]:
    """Hold the answers to a known item against what is right: question, answer, right one, and whether it holds."""
    right: Mapping[str, Any] = orjson.loads(row["expected"])
    if not set(right) <= {one.name for one in scheme.criteria} or not right:
        yield _place_held(answered, row, scheme, right)
        return
    offered = orjson.loads(row["options"])
    for name, wanted in right.items():
        criterion, chosen = scheme.criterion(name), answered.answers.get(name, ())
        if of_pictures(criterion):
            given = [row["places"][int(code) - 1] if code.isdigit() else code for code in chosen]
        else:
            given = [meaning(criterion, code, row, offered) for code in chosen]
        text = PARTED.join(sorted(given))
        near = criterion.type == "scale" and bool(given) and (
            abs(float(text) - float(wanted)) <= scheme.filters.repeat_distance
        )  # fmt: skip
        yield name, text, str(wanted), near or text == wanted


def _place_held(
    answered: Answered, row: KeyRow, scheme: Scheme, right: Mapping[str, str]
) -> tuple[str, str, str, bool]:
    """Hold what an audit says of a known picture against it: a part of the world that is right will do."""
    labels: dict[str, str] = {}
    for known in meanings_of(answered, row, scheme).values():
        labels |= {name: label for name, label in known.items() if name in ("artifact_id", "country", "continent")}
    agrees = bool(labels) == bool(right) and all(right.get(name, label) == label for name, label in labels.items())
    return scheme.criteria[0].name, PARTED.join(labels.values()), PARTED.join(right.values()), agrees


def passes(good: Sequence[tuple[Answered, KeyRow]], tasks: int, scheme: Scheme) -> bool:
    """Tell whether enough of so many tasks of a trial were answered right."""
    right = sum(all(holds for *_, holds in held(answered, row, scheme)) for answered, row in good)
    return right >= scheme.filters.pass_mark * tasks


def without_trial(good: Sequence[tuple[Answered, KeyRow]], key: pl.DataFrame, scheme: Scheme) -> set[str]:
    """Name those who did not pass the trial of their project, or did not take it; nobody where there is none."""
    tasks = Counter(key.filter(kind=TRIAL)["annotator_region"])
    taken: dict[str, list[tuple[Answered, KeyRow]]] = {}
    for answered, row in good:
        if row["kind"] == TRIAL:
            taken.setdefault(answered.annotator, []).append((answered, row))
    people = {(answered.annotator, row["annotator_region"]) for answered, row in good}
    return {name for name, home in people if tasks[home] and not passes(taken.get(name, ()), tasks[home], scheme)}


# Answers that differ from item to item: artifacts to recognise, countries, continents, or lists of an item's own.

FIRST, LATER = "first", "later"  # where the list of an item holds what its picture was mapped to
OF_SPACE = ("artifacts", "countries", "continents")  # the lists that come from a cultural space

Offers = dict[str, Sequence[Offer]]


def wanted_lists(scheme: Scheme) -> set[str]:
    """Name the lists that a scheme takes from its items."""
    return {criterion.options_from for criterion in scheme.criteria if criterion.options_from is not None}


def space_offers(
    items: Sequence[Item], scheme: Scheme, space: pl.DataFrame, matches: pl.DataFrame | None, *, length: int, seed: int
) -> dict[str, Offers]:
    """Offer each item artifacts of its concept, and all countries and continents, where the scheme asks for such lists.

    The artifacts are those that the picture was mapped to, filled up with others drawn from the concept, in a drawn
    order. By chance the nearest one stands first or later, so that what raters make of the first can be seen. Without
    matches a concept may have no more artifacts than are listed.
    """
    wanted = wanted_lists(scheme)
    places = space.select("country", "country_name", "continent").unique().sort("country_name", "country")
    # what is not in the lists may lie in another continent of the world
    of_space, world = places["continent"].unique(), {country.continent for country in countries().values()}
    shared: Offers = {
        "countries": [
            Offer(code, name, {"choice": code, "country": code, "continent": continent})
            for code, name, continent in places.unique("country", keep="first", maintain_order=True).iter_rows()
        ],
        "continents": [
            Offer(f"c{number}", name, {"choice": name, "continent": name})
            for number, name in enumerate([*of_space.sort(), *sorted(world - set(of_space))], start=1)
        ],
    }
    shared = {name: offers for name, offers in shared.items() if name in wanted}
    if "artifacts" not in wanted:
        return {item.item_id: shared for item in items}
    columns = ("artifact_id", "name", "country", "country_name", "continent")
    parts = space.sort("concept", "artifact_id", "country").partition_by("concept", maintain_order=True)
    known = {part["concept"][0]: part.select(columns).unique(maintain_order=True).rows() for part in parts}
    near: dict[str, list[str]] = {}  # the artifacts that each image was mapped to, nearest first
    if matches is not None:
        of_items = pl.col("image_id").is_in([item.item_id for item in items])
        rows = matches.filter(of_items, pl.col("artifact_id").is_not_null()).sort("image_id", "rank")
        near = dict(rows.group_by("image_id", maintain_order=True).agg("artifact_id").iter_rows())
    strange = {artifact for nearest in near.values() for artifact in nearest} - set(space["artifact_id"])
    if strange:
        raise UsageError(
            "matches name artifacts that the cultural space does not have",
            expected="the cultural space of the index that mapped the images",
            found=f"{len(strange)}, such as {min(strange)!r}",
            hint="People could not choose what the images were mapped to.",
        )
    unmapped = [item for item in items if item.known is not None and item.item_id not in near]
    near |= {item.item_id: lookalikes(item, items, near, seed) for item in unmapped}
    return {
        item.item_id: {**shared, "artifacts": shortlist(item, known, near.get(item.item_id, []), length, seed)}
        for item in items
    }


Artifact = tuple[str, str, str, str, str]  # id, name, ISO code, name of the country, continent


def shortlist(
    item: Item, known: Mapping[str, Sequence[Artifact]], near: Sequence[str], length: int, seed: int
) -> list[Offer]:
    """Choose and order the artifacts that one item is offered."""
    concept = item.about.get("concept")
    places = known.get(concept or "", ()) if concept else [index for one in known.values() for index in one]
    if not places:
        raise UsageError(
            "the cultural space has no artifact of an item's concept", where=f"item {item.item_id!r}",
            found=concept or "no concept", expected=", ".join(sorted(known)),
        )  # fmt: skip
    ids = list(dict.fromkeys(index[0] for index in places))
    if len(ids) > length and not near:
        raise UsageError(
            f"{len(ids):,} artifacts are too many to list for {concept or 'an image of no concept'}",
            where=f"item {item.item_id!r}",
            expected=f"matches of the image, to list its {length} likeliest: --matches",
        )
    rng = own_generator(seed, "shortlist", item.item_id)
    likely = [artifact for artifact in dict.fromkeys(near) if artifact in set(ids)][: max(length // 2, 1)]
    others = [artifact for artifact in ids if artifact not in set(likely)]
    rng.shuffle(others)
    chosen = set(likely) | set(others[: max(length - len(likely), 0)])
    listed = [index for index in places if index[0] in chosen]
    rng.shuffle(listed)
    nearest = likely[0] if likely and item.known is None and len(chosen) > 1 else None
    first = bool(own_generator(seed, "first", item.item_id).integers(2))
    if nearest is not None and (listed[0][0] == nearest) != first:
        other = next(number for number, index in enumerate(listed) if (index[0] == nearest) == first)
        listed[0], listed[other] = listed[other], listed[0]
    of_nearest = {"mapped": FIRST if first else LATER}
    return [
        Offer(
            f"a{number}",
            f"{name} ({country_name})",
            {"choice": artifact, "artifact_id": artifact, "country": country, "continent": continent}
            | (of_nearest if artifact == nearest else {}),
        )
        for number, (artifact, name, country, country_name, continent) in enumerate(listed, start=1)
    ]


def own_offers(rows: pl.DataFrame, items: Sequence[Item], scheme: Scheme) -> dict[str, Offers]:
    """Offer each item the lists in its own row."""
    key = next(name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns)
    wanted = sorted(wanted_lists(scheme))
    missing = [name for name in wanted if name not in rows.columns]
    if missing:
        raise UsageError(
            f"the scheme {scheme.name} lets people choose from lists that items do not have",
            expected=f"columns {', '.join(missing)}", found=", ".join(rows.columns),
        )  # fmt: skip
    lists = {str(row[key]): row for row in rows.iter_rows(named=True)}
    return {
        item.item_id: {name: list(offers_of(lists[item.item_id][name], name, item.item_id)) for name in wanted}
        for item in items
    }


def offers_of(cell: object, name: str, item_id: str) -> Iterator[Offer]:
    """Read a list of texts; in a CSV file it is one cell, parted by a bar."""
    values = [part.strip() for part in cell.split("|")] if isinstance(cell, str) else cell
    if not isinstance(values, list) or not values or not all(isinstance(text, str) and text for text in values):
        raise UsageError(
            f"{name} is no list of texts", where=f"item {item_id!r}", expected="texts, parted by | in CSV",
            found=repr(cell),
        )  # fmt: skip
    for number, text in enumerate(dict.fromkeys(values), start=1):
        yield Offer(f"o{number}", text, {"choice": text})


# Answers to the scheme audit as rows of the table `audits`: artifact, country or continent, or what none means.

AUDIT = "audit"  # the scheme whose answers become audits
GOLD_COLUMNS = ("gold", "known_artifact_id", "known_country", "known_continent")  # of audits that had gold items
MAPPED = ("offered_first", "as_mapped")  # those of audits whose form knew what images were mapped to
# what options of the first question mean where no place is named; a form that has only `none` tells nothing apart
MEANS = {"none": NO_CULTURE, "cannot_tell": CANNOT_TELL, "not_in_list": NOT_IN_LIST}


def audits_of(taken: Sequence[tuple[Answered, KeyRow]], scheme: Scheme, pool: str | None) -> pl.DataFrame:
    """Write annotations as AUDITS. A country outside the space lies where most answers put it, so that labels nest."""
    rows = [audit_row(answered, row, scheme, pool) for answered, row in taken]
    if any(row["offered_first"] is not None for row in rows):  # the form knew what images were mapped to
        unlisted = [row for row in rows if row["offered_first"] is None and not row["gold"]]
        for row in unlisted:
            row["offered_first"] = False
    votes: dict[str, Counter[str]] = {}
    for row in rows:
        if row["country"] is not None and row["continent"] is not None:
            votes.setdefault(row["country"], Counter())[row["continent"]] += 1
    lies_in = {country: min(each, key=lambda name: (-each[name], name)) for country, each in votes.items()}
    settled = [{**row, "continent": lies_in.get(row["country"], row["continent"])} for row in rows]
    optional = ["none_means", *(GOLD_COLUMNS if any(row["gold"] for row in rows) else ())]
    optional += MAPPED if any(row["offered_first"] is not None for row in rows) else ()
    schema = AUDITS.schema | {name: AUDITS.optional[name].dtype for name in optional}
    return pl.DataFrame(settled, schema=schema).unique(AUDITS.key, keep="first", maintain_order=True)


def audit_row(answered: Answered, row: KeyRow, scheme: Scheme, pool: str | None) -> dict[str, Any]:
    """Write one annotation as a row: the artifact, country or continent chosen or typed, or none."""
    labels: dict[str, str] = {}
    for known in meanings_of(answered, row, scheme).values():
        labels |= known
    shows = answered.answers.get("shows", ("",))[0]
    if shows == "not_in_list":
        labels |= typed_place(answered.answers.get("place", ("",))[0], row)
    nowhere = not labels or (shows == "not_in_list" and "country" not in labels)
    gold = row["kind"] == "gold"
    known = orjson.loads(row["expected"]) if gold else {}
    apart = "cannot_tell" in scheme.criterion("shows").fixed_values
    listed = orjson.loads(row["options"]).get("artifacts", {}).values()
    mapped_to = {offer["mapped"] for offer in listed if "mapped" in offer}
    return {
        "image_id": row["item_id"],
        "pool": pool or row["annotator_region"],
        "annotator": answered.annotator,
        "artifact_id": labels.get("artifact_id"),
        "country": labels.get("country"),
        "continent": labels.get("continent"),
        "none_of_these": nowhere,
        "none_means": MEANS.get(shows) if nowhere and apart else None,
        "gold": gold,
        "offered_first": FIRST in mapped_to if mapped_to else None,
        "as_mapped": "mapped" in labels if mapped_to else None,
        **{f"known_{name}": known.get(name) for name in ("artifact_id", "country", "continent")},
    }


def typed_place(text: str, row: KeyRow) -> Mapping[str, str]:
    """Tell the country that was typed, by its code where it has one, and its continent where that is known."""
    name = country_code(text) or folded(text)
    if not name:
        return {}
    listed = orjson.loads(row["options"]).get("countries", {}).get(name)
    if listed is not None:
        return {"country": name, "continent": str(listed["continent"])}
    known = countries().get(name)
    return {"country": name} if known is None else {"country": name, "continent": known.continent}


# How carefully somebody answered: attention checks, items asked twice, and time.


def known_flags(names: Sequence[str]) -> tuple[str, ...]:
    """Accept names of flags."""
    for name in names:
        if name not in FLAGS:
            raise UsageError("there is no such flag", found=repr(name), expected=", ".join(FLAGS))
    return tuple(sorted(set(names)))


Taken = Sequence[tuple[Answered, KeyRow]]


def check_rows(good: Taken, scheme: Scheme) -> list[dict[str, Any]]:
    """Write the answers to checks and repeated items, each beside what it is held against."""
    first = {(row["task"], answered.annotator): answered for answered, row in good if row["kind"] == "item"}
    rows: list[dict[str, Any]] = []
    for answered, row in good:
        if row["kind"] == "check":
            asked = orjson.loads(row["expected"])  # other questions are free
            given = {criterion: " | ".join(answered.answers.get(criterion, ())) for criterion in asked}
            rows += (
                {**shared(answered, row, scheme, criterion), "choice": given[criterion] or None, "expected": value,
                 "held": given[criterion] == value}
                for criterion, value in asked.items()
            )  # fmt: skip
        elif row["kind"] == "repeat":
            before = first.get((row["repeat_of"], answered.annotator))
            rows += repeated(answered, row, before, scheme)
        elif row["kind"] in {TRIAL, "gold"}:
            rows += (
                {**shared(answered, row, scheme, criterion), "choice": given or None, "expected": right, "held": holds}
                for criterion, given, right, holds in held(answered, row, scheme)
            )
    return rows


def shared(answered: Answered, row: KeyRow, scheme: Scheme, criterion: str) -> dict[str, Any]:
    """Write what all rows of checks have."""
    return {
        "task": row["task"], "kind": row["kind"], "item_id": row["item_id"], "annotator": answered.annotator,
        "annotator_region": row["annotator_region"], "scheme": scheme.name, "criterion": criterion,
        "seconds": answered.seconds,
    }  # fmt: skip


def repeated(answered: Answered, row: KeyRow, before: Answered | None, scheme: Scheme) -> Iterator[dict[str, Any]]:
    """Hold the answers to an item against those of the first time, where that was answered."""
    distance = scheme.filters.repeat_distance
    earlier = {} if before is None else {
        cell["criterion"]: cell for cell in annotation_rows(before, row, scheme, [])
    }  # fmt: skip
    now = {cell["criterion"]: cell for cell in annotation_rows(answered, row, scheme, [])}
    for criterion in sorted(now.keys() | earlier.keys()):
        cell, old = now.get(criterion), earlier.get(criterion)
        free_text = (cell or old or {}).get("value") is None and (cell or old or {}).get("choice") is None
        held = None if before is None or free_text else alike(cell, old, distance)
        yield {
            **shared(answered, row, scheme, criterion), "choice": written(cell),
            "text": None if cell is None else cell["text"], "expected": written(old), "held": held,
        }  # fmt: skip


def alike(now: Mapping[str, Any] | None, before: Mapping[str, Any] | None, distance: int) -> bool:
    """Tell whether two answers agree: the same choice, or numbers of a scale that lie near; both asked, or neither."""
    if now is None or before is None:
        return False
    if "/" in str(now["criterion"]) or now["value"] is None or before["value"] is None:
        return bool(now["value"] == before["value"] and now["choice"] == before["choice"])
    return abs(float(now["value"]) - float(before["value"])) <= distance


def written(cell: Mapping[str, Any] | None) -> str | None:
    """Write an answer as text."""
    if cell is None:
        return None
    return cell["choice"] if cell["choice"] is not None or cell["value"] is None else f"{cell['value']:g}"


def flags_of(good: Taken, checks: Sequence[Mapping[str, Any]], scheme: Scheme, key: pl.DataFrame) -> list[list[str]]:
    """Flag each annotation, in the order given; one wrong answer fails an attention check."""
    filters = scheme.filters
    failed = {(row["annotator"], row["task"]) for row in checks if row["kind"] == "check" and not row["held"]}
    failures = Counter(annotator for annotator, _ in failed)
    compared = [row for row in checks if row["kind"] == "repeat" and row["held"] is not None]
    total = Counter(row["annotator"] for row in compared)
    apart = Counter(row["annotator"] for row in compared if not row["held"])
    careless = {
        ATTENTION: {name for name, count in failures.items() if count > filters.attention_failures},
        INCONSISTENT: {name for name, count in total.items() if apart[name] / count > filters.inconsistent_share},
        TRIAL_FAILED: without_trial(good, key, scheme),
    }
    return [
        [
            *sorted(flag for flag, names in careless.items() if answered.annotator in names),
            *([TOO_FAST] if answered.seconds is not None and answered.seconds < filters.fewest_seconds else []),
            *([f"recruitment:{answered.recruitment}"] if answered.recruitment else []),
        ]
        for answered, _ in good
    ]


def import_answers(
    work: Work, project: Path, exports: Sequence[Path], *, pool: str | None, distinct: bool = False
) -> Outcome:
    """Import exports of Label Studio or of the form.

    Audits come from the pool that is named, else from the region of each annotator; `distinct` people who answer alike
    are several.
    """
    tables, drops, notes = imported_tables(project, exports, pool=pool, distinct=distinct)
    for table, frame in tables:
        write_table(work.out, table, frame)
    return Outcome({table.name: frame.height for table, frame in tables}, drops, notes)


def imported_tables(
    project: Path, exports: Sequence[Path], *, pool: str | None, distinct: bool
) -> tuple[list[tuple[Table, pl.DataFrame]], Counter[str], dict[str, object]]:
    """Make the tables of the exports of a project, count what was left out, and say what is to be known."""
    name, scheme, key = read_project(project)
    taken = read_exports(records_of(exports), key, name, scheme)
    checks = check_rows(taken.good, scheme)
    flags = flags_of(taken.good, checks, scheme, key)
    items = [(pair, flagged) for pair, flagged in zip(taken.good, flags, strict=True) if pair[1]["kind"] == "item"]
    rows = [row for (answered, about), flagged in items for row in annotation_rows(answered, about, scheme, flagged)]
    answers = copies_flagged(pl.DataFrame(rows, schema=ANNOTATIONS.schema), distinct=distinct)
    copies = set(answers.filter(pl.col("flags").list.contains(COPIED))["annotator"])
    checked_rows = pl.DataFrame(checks, schema=ANNOTATION_CHECKS.schema)
    rated = (
        key.filter(kind="item").select(list(RATED_ITEMS.schema)).unique("item_id", keep="first", maintain_order=True)
    )
    tables = [
        (ANNOTATIONS, answers), (ANNOTATION_CHECKS, checked_rows), (RATED_ITEMS, rated),
        (QUARANTINE, taken.quarantine_table),
    ]  # fmt: skip
    drops = Counter(taken.skipped)
    flagged = Counter(flag for _, raised in items for flag in raised if flag in FLAGS) + Counter(
        {COPIED: sum(pair[0].annotator in copies for pair, _ in items)}
    )
    notes: dict[str, object] = {"slots": slots(key, taken), "flagged": dict(sorted(flagged.items()))}
    if scheme.name == AUDIT:
        asked = [each for each in zip(taken.good, flags, strict=True) if each[0][1]["kind"] in {"item", "gold"}]
        kept = [pair for pair, raised in asked if not set(raised) & set(FLAGS) and pair[0].annotator not in copies]
        drops["flagged, and not in the audits"] = len(asked) - len(kept)
        audits = audits_of(kept, scheme, pool)
        drawing = orjson.loads((project / PROJECT_FILE).read_bytes()).get("drawing")
        tables.append((AUDITS, audits.with_columns(drawing=pl.lit(drawing)) if drawing else audits))
        notes["audits_without_country"] = audits.filter(~pl.col("none_of_these"), pl.col("country").is_null()).height
    notes["answers"] = {one.name: list(one.fixed_values) for one in scheme.criteria if one.fixed_values}
    tables.append((RATERS, raters_of(answers, checked_rows, taken.quarantine_table)))
    if counted_on := who_counted(tables[-1][1]):
        notes["people"] = counted_on
    if taken.quarantine:
        reasons = sorted(Counter(row["reason"] for row in taken.quarantine).items(), key=lambda one: (-one[1], one[0]))
        why = ", ".join(f"{count:,} {reason}" for reason, count in reasons)
        notes["findings"] = [f"{taken.set_aside:,} annotations in {QUARANTINE.name}.parquet ({why})"]
        drops |= Counter({"in quarantine": taken.set_aside})
    return tables, +drops, notes


def raters_in(folder: Path) -> pl.DataFrame:
    """Read how each person did, or find it out from the answers that a form keeps.

    Raises:
        UsageError: the folder has neither.
    """
    table = folder / f"{RATERS.name}.parquet"
    if table.is_file():
        return read_table(table, RATERS)
    if answers := served_answers(folder):
        tables, *_ = imported_tables(folder, answers, pool=None, distinct=False)
        return {one.name: frame for one, frame in tables}[RATERS.name]
    raise UsageError(
        "nobody has answered here", where=str(folder), expected="the folder of `annotate import` or `annotate "
        "aggregate`, or of a form that `annotate serve` served", hint="Import the answers first.",
    )  # fmt: skip


def read_project(project: Path) -> tuple[str, Scheme, pl.DataFrame]:
    """Read the name, the scheme and the key of a project."""
    path = project / PROJECT_FILE
    try:
        record = orjson.loads(path.read_bytes())
        name, scheme = str(record["project"]), Scheme.model_validate(record["scheme"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise IntegrityError(
            "not the project of an annotation", where=str(path), expected="the folder that `annotate export` wrote",
            found=str(error)[:300],
        ) from error  # fmt: skip
    return name, scheme, read_table(project / f"{ANNOTATION_KEY.name}.parquet", ANNOTATION_KEY)


def records_of(exports: Sequence[Path]) -> list[TaskRecord]:
    """Read all exports; files of one name are told apart by their number."""
    names = Counter(path.name for path in exports)
    records = []
    for number, path in enumerate(exports, start=1):
        for record in read_export(path):
            name = record.file if names[path.name] == 1 else f"{number}:{record.file}"
            records.append(TaskRecord(name, record.number, record.value))
    return records


def slots(key: pl.DataFrame, taken: ImportedAnswers) -> dict[str, int]:
    """Count the slots of the items, and how many of them were filled."""
    wanted = Counter(dict(key.filter(kind="item").select("task", "slots").iter_rows()))
    found = Counter(row["task"] for _, row in taken.good if row["kind"] == "item")
    filled = (found & wanted).total()
    return {"wanted": wanted.total(), "filled": filled, "beyond": found.total() - filled}
