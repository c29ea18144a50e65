"""The page of a `linguistic` run: the paper's tables as sections, with corrected and true values beside."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.choices import MONK_SWATCHES
from culturekit.core.schemas import DIALECT_PAIRS, PROMPTS
from culturekit.core.tables import read_table
from culturekit.metrics.linguistic.picture_tones import TONE_WARNINGS
from culturekit.metrics.linguistic.tone_histograms import MISSED
from culturekit.people.tasks import ANYWHERE
from culturekit.recipes.linguistic import roles as folders
from culturekit.recipes.linguistic.world import CRITERIA
from culturekit.report.gallery import Chosen, Gallery, Strip, values_of
from culturekit.report.headline import sentences_on, standing
from culturekit.report.report_stage import SectionReport
from culturekit.report.run_folders import RunFolders, values_in
from culturekit.report.sections import (
    Cell,
    Grid,
    Section,
    SectionPage,
    Sources,
    Where,
    drawn,
    grid,
    row_of,
    score_grid,
    section_page,
)
from culturekit.scores.answers import TRUTH
from culturekit.scores.family import parsed

TITLE = "Which dialects, whom and whose places do these models know?"
STATED = ("dialects", "tones-…", "neutral-…", "questions-…", "judged-modern", "ratings", "true-…")
PARAMS = ("of", "pool", "detector", "labels", "tone", "first", "criterion", "marked")
KINDS = {"rating": ("rating_mean", "rating_sd", "criterion"), "question": ("question_share", "question_sd", "first")}
WHOLE, PAIRS = "all", 3
ONE_PERSON = (
    f"One person looked at each picture, and nobody knows how often they err: limits of corrected tones take it that "
    f"{MISSED:.0%} of answers name the next tone."
)
ONE_PLACE = "One person rated each place: errors cannot be seen, and no corrected interval of modern places has them."
OF_THE_MAP = (
    "STD and MAD are over the groups of each prompt, then averaged. The paper's MAD cannot be of the same six values "
    "as its STD: it is at least 0.577 of it, and 0.27 to 0.41 are printed. No people put this map right, since nobody "
    "answers in cosines: it is the encoder's view, and below it the truth where that is known."
)


def linguistic_page(run: RunFolders) -> SectionPage:
    """Collect everything the page shows."""
    shown = Gallery(run)
    found = [
        _dialect_section(run, shown), *_tone_sections(run, shown), _heat_section(run), _ranking_section(run),
        _modern_section(run, shown), _question_section(run), _rating_section(run, shown), _asked_section(run),
    ]  # fmt: skip
    about = ("two dialects, neutral prompts and groups",)
    return section_page(run, TITLE, about, _verdict(run), (*_unseen(run), *_doubts(run)), found, STATED)


def _scores_of(run: RunFolders, role: roles.Role, model: str = "", variant: str = "") -> pl.DataFrame | None:
    """Read the scores of a stage, with what their parameters say as columns; None for a run without it."""
    return run.scored(role, model, variant, *PARAMS)


def _verdict(run: RunFolders) -> Iterator[str]:
    """Say which models come first as people see them, by each rule alone, and in truth."""
    gap = (("has the smallest gap between dialects", "smaller than"), {"metric": "dialect_gap"})
    even = (("spreads skin tones most evenly", "more evenly than"), {"metric": "tone_std", "group": None})
    tones = [source for source in _tone_sources(run) if not source[0].startswith("people alone")]
    for sources, (words, common) in ((_dialect_sources(run), gap), (tones, even)):
        people_first = sorted(sources, key=lambda source: "people" not in source[0])
        yield from sentences_on([
            standing(scores, run.models, who, words, {**common, **where}, lowest=True)
            for who, where, scores in people_first
        ])  # fmt: skip


def _dialect_sources(run: RunFolders) -> Sources:
    """List who says how good pictures of dialects are."""
    table, true = _scores_of(run, folders.DIALECTS), _scores_of(run, folders.TRUE_DIALECTS)
    if table is None:
        return []
    scorers = values_in(table.filter(pl.col("pool").is_null()), "of")
    found: Sources = [(name, {"of": name, "pool": None}, table) for name in scorers]
    found += [(f"people{_from(pool)}", {"of": "correct", "pool": pool}, table)
              for pool in values_in(table, "pool")]  # fmt: skip
    return found + ([] if true is None else [("the truth", {"of": "correct", "labels": TRUTH}, true)])


def _from(pool: str) -> str:
    """Say where people live who answered, where that was asked."""
    return "" if pool == ANYWHERE else f" from {pool}"


def _tone_sources(run: RunFolders) -> Sources:
    """List who says what tones there are: each rule, each rule put right, people alone, and the truth."""
    found, alone = Sources(), Sources()
    for detector in run.variants(folders.TONES):
        if (table := _scores_of(run, folders.TONES, variant=detector)) is None:
            continue
        pools = values_in(table, "pool")
        found.append((detector, {"detector": detector, "labels": None, "pool": None}, table))
        found += [(f"{detector} corrected by people{_from(pool)}", {"labels": "corrected", "pool": pool}, table)
                  for pool in pools]  # fmt: skip
        alone = [(f"people alone{_from(pool)}", {"detector": "people", "pool": pool}, table) for pool in pools]
    true = _scores_of(run, folders.TRUE_TONES)
    return found + alone + ([] if true is None else [("the truth", {"detector": "people", "labels": TRUTH}, true)])


def _unseen(run: RunFolders) -> Iterator[str]:
    """Say of each rule for skin how much of what it was tried on it sees."""
    for detector in run.variants(folders.TONES):
        sees: Any = run.manifest(folders.TONES, variant=detector).options["sees"]
        known = f"{len(sees['swatches'])} of 10 swatches and {sees['faces']} of {sees['of_faces']} faces in five lights"
        warning = TONE_WARNINGS.get(detector, "")  # type: ignore[call-overload]
        yield f"The rule {detector} sees {known}{'; ' if warning else ''}{warning}."


def _doubts(run: RunFolders) -> Iterator[str]:
    """Say which scores people did not put right, and why; and what is taken for granted where one person looked."""
    every = [(folders.TONES, detector) for detector in run.variants(folders.TONES)]
    every += [(folders.JUDGED, "")] * run.has(folders.JUDGED)
    taken: dict[str, None] = {}
    for role, variant in every:
        manifest, table = run.manifest(role, variant=variant), _scores_of(run, role, variant=variant)
        for reason, count in manifest.drops.items():
            if "not corrected" in reason or "not put right" in reason:
                yield f"{manifest.stage.removeprefix('score-')}: {count:,} {reason}."
        if table is not None and table["marked"].str.contains("one rater").any():
            taken |= {ONE_PLACE if role is folders.JUDGED else ONE_PERSON: None}
    yield from taken


def _dialect_section(run: RunFolders, shown: Gallery) -> Section | None:
    """Put the scores of both dialects and their gaps side by side: by a scorer, by people, in truth."""
    sources = _dialect_sources(run)
    if not sources:
        return None
    both = [str(run.manifest(folders.DIALECTS).options[side]) for side in ("standard", "other")]
    columns: list[tuple[str, Where]] = [(name, {"metric": "dialect_score", "group": name}) for name in both]
    columns.append((" − ".join(both), {"metric": "dialect_gap"}))
    grids = tuple(
        score_grid(what, "model", columns, [(model, {"model": model, **where}, scores) for model in run.models],
                   "dots", "score of either dialect, and their gap")
        for what, where, scores in sources
    )  # fmt: skip
    lead = ("A gap is paired by prompt, with an interval over prompts. A scorer that reads words as they stand is "
            "content with a picture of them; people say whether it shows what is meant.")  # fmt: skip
    pairs = shown.strip("Pairs of pictures that the first score puts furthest apart", _pairs(run, sources[0][1], both))
    return Section("dialects", "How far apart are the dialects?", lead, grids, strips=pairs)


def _pairs(run: RunFolders, where: Where, both: Sequence[str]) -> Iterator[tuple[str, Chosen]]:
    """Choose the pairs of each model with the widest gap, and of each dialect its first picture."""
    values = values_of(run, folders.DIALECTS, {"metric": "dialect_score", **where})
    of_prompt = values.group_by("model", "prompt_id", "group").agg(pl.col("value").sort().mean(), pl.col("item").min())
    one, other = (of_prompt.filter(group=name) for name in both)
    gaps = one.join(other, on=["model", "prompt_id"]).with_columns(gap=(pl.col("value") - pl.col("value_right")).abs())
    for model in run.models:
        for row in gaps.filter(model=model).sort("gap", "prompt_id", descending=[True, False]).head(PAIRS).to_dicts():
            sides = zip(both, (row["item"], row["item_right"]), (row["value"], row["value_right"]), strict=True)
            yield f"{model}: {row['prompt_id']}", [(item, [f"{name} {value:.2f}"]) for name, item, value in sides]


def _tone_sections(run: RunFolders, shown: Gallery) -> Iterator[Section]:
    """Show how unevenly tones are spread, over all persons and by dialect, and the shares of the ten tones."""
    sources, seen = _tone_sources(run), " ".join(_unseen(run))
    if not sources:
        return
    groups = [None, *reversed(values_in(sources[0][2], "group"))]
    plain = [one for one in sources if one[1].get("labels") != "corrected"]
    corrected = [one for one in sources if one[1].get("labels") == "corrected"]
    spreads, shares = list[Grid](), list[Grid]()
    for rows, show in ((plain, drawn), (corrected, _folded)):
        spreads += [
            show(score_grid(f"{name} of {model}", "by",
                            [(group or WHOLE, {"metric": f"tone_{name.lower()}", "model": model, "group": group})
                             for group in groups], rows), "dots", f"{name}; 0 is even")
            for name in ("STD", "MAD") for model in run.models if rows
        ]  # fmt: skip
        shares += [
            show(score_grid(f"Persons of {model}", "by",
                            [(str(tone), {"metric": "tone_share", "model": model, "group": None, "tone": str(tone)})
                             for tone in range(1, 11)], rows), "bars", "Monk's ten tones", swatches=MONK_SWATCHES)
            for model in run.models if rows
        ]  # fmt: skip
    lead = f"0 is even over ten tones; one tone alone has STD 0.3 and MAD 0.18. {seen}"
    yield Section("tones", "How evenly are skin tones spread?", lead, tuple(spreads))
    lead = f"Of pictures with skin, lightest tone first. {seen}"
    yield Section("histogram", "Shares of skin tones", lead, tuple(shares), strips=tuple(_tones_apart(run, shown)))


def _folded(shown: Grid, *_: str, **__: object) -> Grid:
    """Let a table of corrected scores stand folded behind the plain ones."""
    return replace(shown, corrected=True)


def _tones_apart(run: RunFolders, shown: Gallery) -> Iterator[Strip]:
    """Show the pictures on which each rule and people differ most about the tone."""
    for detector in run.variants(folders.TONES):
        seen, people = (
            values_of(run, folders.TONES, {"metric": "mean_tone", "group": None, "detector": who}, variant=detector)
            for who in (detector, "people")
        )
        far = shown.apart((detector, seen), ("people", people), run.models)
        yield from shown.strip(f"Tones on which {detector} and people differ most", far)


def _heat_section(run: RunFolders) -> Section | None:
    """Show which groups neutral pictures look like, and how unevenly."""
    grids, spread = [], {"STD": "std", "MAD": "mad", "STD of means": "std_of_means", "MAD of means": "mad_of_means"}
    for what, role in (("by the encoder", folders.NEUTRAL), ("in truth", folders.NEUTRAL_TRUTH)):
        found: Sources = [(model, {"model": model}, table) for model in run.models
                          if (table := _scores_of(run, role, model)) is not None]  # fmt: skip
        if found:
            groups = values_in(found[0][2].filter(metric="neutral_similarity"), "group")
            similar = [(group, {"metric": "neutral_similarity", "group": group}) for group in groups]
            grids.append(score_grid(f"Similarity of neutral pictures, {what}", "model", similar, found, "heat"))
            spreads: list[tuple[str, Where]] = [(name, {"metric": f"neutral_{key}"}) for name, key in spread.items()]
            grids.append(score_grid(f"Spread over groups, {what}", "model", spreads, found))
    return Section("neutral", "What is neutral to a model?", OF_THE_MAP, tuple(grids)) if grids else None


def _ranking_section(run: RunFolders) -> Section | None:
    """Rank neutral prompts by how unevenly they resemble the groups."""
    found: dict[str, Any] = {}
    for model in run.models:
        table = _scores_of(run, folders.NEUTRAL, model)
        if table is not None:
            found[model] = parsed(table.filter(metric="neutral_std_of_means")["params"][0])["prompts_ranked"]
    ranks = enumerate(zip_longest(*found.values(), fillvalue="–"), 1)
    rows = ((str(rank), map(Cell, nouns)) for rank, nouns in ranks)
    ranked_nouns = grid("Nouns from the lowest STD to the highest", ("place", *found), rows)
    return Section("ranking", "Which nouns are most neutral?", "By the encoder.", (ranked_nouns,)) if found else None


def _modern_section(run: RunFolders, shown: Gallery) -> Section | None:
    """Put the share of modern places side by side: by the encoder and in truth, then as people correct it."""
    judged, true = _scores_of(run, folders.JUDGED), _scores_of(run, folders.TRUE_RATINGS)
    if judged is None:
        return None
    shares = ((pl.col(name) - 1) / 4 for name in ("value", "ci_low", "ci_high"))  # of ratings from 1 to 5
    truth = [] if true is None else [
        true.filter(metric="rating_mean", criterion="current_date").with_columns(*shares)
    ]  # fmt: skip
    table, firsts = pl.concat([judged, *truth], how="diagonal_relaxed"), values_in(judged, "first")
    rows: dict[str, Sources] = {
        model: [(group or WHOLE, {"model": model, "group": group}, table)
                for group in judged.filter(model=model)["group"].unique().sort(nulls_last=True)]
        for model in run.models
    }  # fmt: skip
    columns: list[tuple[str, Where]] = [(f"{first}, judged", {"first": first, "labels": "judged"}) for first in firsts]
    columns += [("in truth", {"labels": TRUTH})] * bool(truth)
    people: list[tuple[str, Where]] = [
        (f"{first}, corrected{_from(pool)}", {"first": first, "labels": "corrected", "pool": pool})
        for first in firsts for pool in values_in(judged, "pool")
    ]  # fmt: skip
    plain = [score_grid(f"Places of {model}", "group", columns, found) for model, found in rows.items()]
    corrected = [_folded(score_grid(f"Places of {model}", "group", people, found))
                 for model, found in rows.items() if people]  # fmt: skip
    lead = "The share of the first caption of each pair; people rate from 1 to 5 how much a place looks like today."
    dated = values_of(run, folders.RATINGS, {"metric": "rating_mean", "criterion": "current_date"})
    asked = values_of(run, folders.QUESTIONS, {"metric": "question_share", "group": None}, models=run.models)
    far = shown.apart(("encoder", asked), ("people", dated.with_columns((pl.col("value") - 1) / 4)), run.models)
    strips = shown.strip("Places on which the encoder and people differ most, from 0, of old, to 1, of today", far)
    title = "How modern do places look, as judged, as corrected, as true?"
    return Section("modern", title, lead, (*plain, *corrected), strips=strips)


def _question_section(run: RunFolders) -> Section | None:
    """Show the shares of both captions of each pair, with deviations over images."""
    grids = []
    for model in run.models:
        table = _scores_of(run, folders.QUESTIONS, model)
        if table is not None:
            firsts, groups = values_in(table, "first"), table["group"].unique().sort(nulls_last=True).to_list()
            grids.append(grid(f"Places of {model}", ("group", *firsts), (
                (group or WHOLE, [_with_deviation(table, group, one, "question") for one in firsts]) for group in groups
            )))  # fmt: skip
    lead = "Mean ± standard deviation over images (n − 1); the other caption of a pair has what is left to 1."
    return Section("questions", "Two wordings of one question", lead, tuple(grids)) if grids else None


def _with_deviation(table: pl.DataFrame, group: str | None, about: str, what: str) -> Cell:
    """Write a mean with the deviation of what it is over: of ratings, or of answers to questions."""
    mean, deviation, key = KINDS[what]
    found, spread = (row_of(table, metric=name, group=group, **{key: about}) for name in (mean, deviation))
    if found is None:
        return Cell("–")
    return Cell(f"{found['value']:.3f}" + (f" ± {spread['value']:.3f}" if spread is not None else ""))


def _rating_section(run: RunFolders, shown: Gallery) -> Section | None:
    """Show people's ratings by group and criterion, and what images deserve where that is known."""
    table, true = _scores_of(run, folders.RATINGS), _scores_of(run, folders.TRUE_RATINGS)
    if table is None:
        return None
    sources = [(f"rated by people{_from(pool)}", table.filter(pool=pool)) for pool in values_in(table, "pool")]
    sources += [] if true is None else [("what images deserve", true)]
    groups = values_in(table, "group")
    heads = ("group", *(name.replace("_", " ") for name in CRITERIA))
    grids = tuple(
        grid(f"{model}, {what}", heads, (
            (group, [_with_deviation(scores.filter(model=model), group, name, "rating")
                     for name in CRITERIA])
            for group in groups
        ))
        for model in run.models for what, scores in sources
    )  # fmt: skip
    rated = values_of(run, folders.RATINGS, {"metric": "rating_mean"})
    strips = shown.strip("Places rated highest and lowest, over all questions", shown.ends(rated, run.models))
    lead = "From 1 to 5, mean ± standard deviation over images."
    return Section("ratings", "How places are rated", lead, grids, strips=strips)


def _asked_section(run: RunFolders) -> Section | None:
    """List the pairs of dialects, those that fell too, and the prompts about groups, each with where it is from."""
    grids = []
    if run.has(folders.OF_KIND, variant="dialects"):
        path = run.table(folders.OF_KIND, variant="dialects").with_name(f"{DIALECT_PAIRS.name}.parquet")
        pairs = read_table(path, DIALECT_PAIRS).to_dicts() if path.is_file() else []
        shown = [[Cell(row[name] or "") for name in ("proposer", "outcome", "detail")] for row in pairs]
        rows = ((f"{row['standard']} / {row['other']}", cells) for row, cells in zip(pairs, shown, strict=True))
        heads = ("pair", "from", "outcome", "why, or where to look it up")
        grids += [grid("Pairs of dialects", heads, rows)] * bool(pairs)
    if run.has(folders.OF_KIND, variant="specific"):
        table = read_table(run.table(folders.OF_KIND, variant="specific"), PROMPTS)
        asked = ((row["text"], (Cell(row["group"]), Cell(row["template_id"]))) for row in table.to_dicts())
        grids.append(grid("Prompts about groups", ("prompt", "group", "from"), asked))
    lead = ("A pair falls where it is malformed or repeated, where a corpus lacks a word, where a sentence is not "
            "grammatical, or where nobody has reviewed it. Three of the paper's 42 prompts about groups are printed; "
            "how many most groups have follows from its tables, and prompts that are not printed are not the paper's. "
            "Neither are the captions of questions, which it names and does not print.")  # fmt: skip
    return Section("asked", "What was asked", lead, tuple(grids)) if grids else None


LINGUISTIC_PAGE = SectionReport(
    "linguistic-report", 9, linguistic_page,
    (folders.TRUE_DIALECTS, folders.TRUE_TONES, folders.TRUE_RATINGS, folders.NEUTRAL_TRUTH),
)  # fmt: skip
