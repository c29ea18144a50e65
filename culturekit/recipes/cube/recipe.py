"""The recipe `cube` as stages: the space, pictures and their mapping, and all models scored and compared."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import numpy as np

from culturekit.builders.completing.completion import complete
from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.builders.judging.geo_tag import tag
from culturekit.builders.prompting.prompts import named_artifacts_stage, one_language_stage, prompts_stage, wordings_of
from culturekit.builders.shown_images import ImageSample
from culturekit.builders.space.cspace import ReleaseOptions, release_stage, taken_prompts_stage, taken_space_stage
from culturekit.builders.space.space_files import count_of_kinds
from culturekit.config.checks import dump_files, hand_path, knows_truth
from culturekit.config.kinds import RecipeKind
from culturekit.config.recipe_parts import Annotations, Model
from culturekit.core import roles
from culturekit.core.choices import SHORTLIST, PromptKind
from culturekit.core.inputs import Files, Numbered
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, MATCHES
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, write_table
from culturekit.generation.backend import FOLDER
from culturekit.generation.folder.folder_run import image_folder, stage_of
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import generate_stage
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.folder.build import IndexFiles, IndexOptions, index_stage
from culturekit.index.matching.comparison import MappingInputs
from culturekit.index.matching.mapping import diagnosis_stage, map_stage, shuffle_stage, truth_stage
from culturekit.index.raters.quality import quality_stage
from culturekit.kg.concepts import ENGLISH, Concept, load_concept
from culturekit.kg.dump.ingest import ingest_stage
from culturekit.kg.exchange.extract_stage import extract_stage
from culturekit.llm.answers import LlmOptions
from culturekit.metrics.corrected.audit_sampling import audit_sample
from culturekit.metrics.statistics.intervals import Target
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.candidate_review import ReviewFiles, review_stage
from culturekit.people.export import ExportOptions
from culturekit.people.importing import known_flags
from culturekit.people.stages import (
    AggregateFiles,
    AggregateReads,
    ExportFiles,
    aggregate_stage,
    export_stage,
    rated_sample_stage,
    simulated_answers_stage,
)
from culturekit.people.tasks import Quotas
from culturekit.recipes.cube.keys import Recipe
from culturekit.recipes.cube.nested_keys import (
    INCEPTION,
    SECOND_TAGS,
    Audit,
    Realism,
    References,
    features_of,
    lpips_of,
    simulated_audits,
)
from culturekit.recipes.cube.served_audit import with_answers
from culturekit.recipes.parts import Looks, add_asking, bought, imported_answers, model_images
from culturekit.recipes.planning import asks, works
from culturekit.release.card_build import card_stage
from culturekit.report.headline import headline_lines
from culturekit.report.report_stage import report_stage
from culturekit.report.run_folders import RunFolders
from culturekit.scores.audited import AuditedOptions, audited
from culturekit.scores.compare import ComparisonOptions, compare, ranks
from culturekit.scores.distribution import distribution
from culturekit.scores.diversity import PAIRS_ORDER, Correction, QvsOptions
from culturekit.scores.faithfulness import QuestionOptions
from culturekit.scores.gaps import LANGUAGE_COLUMN, GapOptions, gaps
from culturekit.scores.image_levels import MeanOptions
from culturekit.scores.inputs import (
    ImageTables,
    PairFolders,
    ProbabilityFolders,
    ValueTables,
    VectorFolder,
    VectorFolders,
)
from culturekit.scores.judged import judged
from culturekit.scores.meta import MetaOptions, meta
from culturekit.scores.named_in_recipe import bound_stage
from culturekit.scores.qvs import qvs
from culturekit.scores.realism import realism
from culturekit.scores.routes import RouteOptions, routes
from culturekit.scores.spread import SpreadOptions, pairs, spread
from culturekit.scores.stability import stability
from culturekit.scores.within import WithinOptions, within

SIMULATED = "The audit was made by simulated raters, who know what the simulated models drew."

# Pictures of artifacts and of models: the index, what each model shows, and other ways to look at the same images.


def known_prompts(recipe: Recipe, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds before they are built: those of a file, or of templates that alone decide."""
    if recipe.prompts.file is not None:
        return count_of_kinds(Path(recipe.prompts.file), kinds)
    if set(kinds) != {"underspecified"} or recipe.cspace is not None:
        return None
    concepts = [load_concept(name) for name in recipe.concepts]
    wordings = wordings_of(recipe.prompts.built(), concepts)
    return sum(len(each.leaving_open(one.concept)) for each in wordings for one in concepts)


def prompt_count(recipe: Recipe, run: Run, kinds: Sequence[PromptKind]) -> int | None:
    """Count the prompts of some kinds."""
    table = run.table(roles.PROMPTS)
    return count_of_kinds(table, kinds) if table.is_file() else known_prompts(recipe, kinds)


def all_images(recipe: Recipe, run: Run, plan: ImagePlan) -> int | None:
    """Count the images that a model makes of its prompts."""
    prompts = prompt_count(recipe, run, plan.kinds)
    return None if prompts is None else prompts * plan.repeats * plan.slots


def wire_index(recipe: Recipe, run: Run) -> None:
    """Gather the references and build the index from them; without any, artifacts are known by their names."""
    if recipe.references is not None:
        languages = recipe.prompts.languages
        if recipe.names_artifacts:
            run.add(named_artifacts_stage(run.table(roles.CSPACE)), roles.REFERENCE_PROMPTS)
        elif len(languages) > 1:
            one = ENGLISH if ENGLISH in languages else languages[0]
            run.add(one_language_stage(run.table(roles.PROMPTS), one), roles.REFERENCE_PROMPTS)
        references(recipe, run, recipe.references)
    indexed(run, roles.INDEX, IndexOptions(recipe.encoder, "text" if recipe.references is None else "image"))


def references(recipe: Recipe, run: Run, wanted: References) -> None:
    """Draw the pictures, or take those of a folder: as many as it has, unless the recipe says how many."""
    prompts, space = reference_prompts(run), run.table(roles.CSPACE)
    images, backend = wanted.images, wanted.backend
    if parse_spec(backend).name == FOLDER and not wanted.counted:
        stage = stage_of(image_folder(backend, prompts, model="references", cspace=space))
    else:
        llm, seed = LlmOptions(go_on=recipe.llm.go_on), recipe.seed
        stage = generate_stage(prompts, images, backend=backend, model="references", seed=seed, cspace=space, llm=llm)
    run.add(stage, roles.REFERENCES)


def reference_prompts(run: Run) -> Path:
    """Name the prompts that the references answer."""
    return run.table(roles.REFERENCE_PROMPTS if run.has(roles.REFERENCE_PROMPTS) else roles.PROMPTS)


def indexed(run: Run, role: Role, options: IndexOptions, variant: str = "") -> Path:
    """Build an index, from the references unless it knows names alone."""
    files = IndexFiles(run.table(roles.CSPACE))
    if options.channel != "text":
        files = replace(files, references=run.table(roles.REFERENCES), prompts=reference_prompts(run))
    return run.add(index_stage(files, options), role, variant=variant)


def wire_models(recipe: Recipe, run: Run) -> None:
    """Make, map and rate the images of each model."""
    space, audit = run.table(roles.CSPACE), recipe.audit
    for model in recipe.models:
        name, images = model.name, drawn(recipe, run, model, recipe.images)
        matches = mapped(recipe, run, images, roles.MATCHES, name)
        run.add(quality_stage(images, scorer=recipe.quality), roles.QUALITY, name)
        if knows_truth(model.backend):
            run.add(truth_stage(images, space), roles.TRUTH, name)
        if audit is not None and audit.file is None:
            truth = run.table(roles.TRUTH, name)
            run.add(simulated_audit_stage(matches, truth, space, audit, seed=recipe.seed), roles.AUDIT, name)


def simulated_audit_stage(matches: Path, truth: Path, cspace: Path, audit: Audit, *, seed: int) -> Stage:
    """Draw images, and have simulated raters label them."""

    def run(work: Work) -> Outcome:
        sample = audit_sample(read_table(matches, MATCHES), n=audit.images, rng=np.random.default_rng(seed))
        labels = simulated_audits(
            read_table(truth, MATCHES), read_table(cspace, CSPACE), sample["image_id"].to_list(), audit.raters,
            seed=seed,
        )  # fmt: skip
        write_table(work.out, AUDIT_SAMPLE, sample)
        write_table(work.out, AUDITS, labels)
        return Outcome({"audit_sample": sample.height, "audits": labels.height}, notes={"caveat": SIMULATED})

    inputs = {"matches": matches, "truth": truth, "cspace": cspace}
    options = {"images": audit.images, **asdict(audit.raters)}
    return Stage("audit", "simulated-audit", 4, run, inputs, options, {"audit": seed})


def drawn(recipe: Recipe, run: Run, model: Model, images: ImagePlan, role: Role = roles.IMAGES) -> Path:
    """Have a model make images; templates may tell how many before there are prompts."""
    return model_images(run, model, images, role, seed=recipe.seed, prompts=partial(known_prompts, recipe))


def mapped(recipe: Recipe, run: Run, images: Path, role: Role, model: str, variant: str = "") -> Path:
    """Map images to their nearest artifacts, by the index of a variant where there are several."""
    index = run.folder(roles.INDEX_BY, variant=variant) if variant else run.folder(roles.INDEX)
    stage = map_stage(MappingInputs(index, images, run.table(roles.PROMPTS)), recipe.mapping)
    return run.add(stage, role, model, variant)


def wire_within_images(recipe: Recipe, run: Run) -> None:
    """Make and map images of prompts that name a country, where the others are of no such prompts."""
    wanted = recipe.within
    if wanted is None or set(wanted.kinds) <= set(recipe.images.kinds):
        return
    plan = replace(recipe.images, **wanted.model_dump())
    for model in recipe.models:
        mapped(recipe, run, drawn(recipe, run, model, plan, roles.WITHIN_IMAGES), roles.WITHIN_MATCHES, model.name)


def wire_diagnosis(recipe: Recipe, run: Run) -> None:
    """Map pictures that show nothing, and look at the instrument itself."""
    if (wanted := recipe.diagnosis) is None:
        return
    plan = replace(recipe.images, repeats=min(wanted.floor_repeats, recipe.images.repeats))
    drawn(recipe, run, Model(name=roles.CULTURE_FREE, backend="simulated?noise=1"), plan)
    pictures = run.table(roles.IMAGES, run.models[0])
    shuffled = shuffle_stage(pictures, repeats=plan.repeats, seed=recipe.seed)
    run.add(shuffled, roles.IMAGES, roles.SHUFFLED, plan=works(partial(all_images, recipe, run, plan)))
    for floor in roles.FLOORS:
        mapped(recipe, run, run.table(roles.IMAGES, floor), roles.MATCHES, floor)
    stage = diagnosis_stage(
        run.folder(roles.INDEX), Numbered(run.tables(roles.MATCHES)), mapping=recipe.mapping, size=recipe.scores.size,
        repeats=wanted.ceiling_repeats, seed=recipe.seed,
    )  # fmt: skip
    run.add(stage, roles.DIAGNOSIS)


def wire_instruments(recipe: Recipe, run: Run) -> None:
    """Index, map and score with each of the other instruments; the folders carry its name."""
    for one in recipe.instruments:
        indexed(run, roles.INDEX_BY, IndexOptions(one.encoder, one.channel), one.name)
        for model in run.models:
            mapped(recipe, run, run.table(roles.IMAGES, model), roles.MATCHES_BY, model, one.name)
        stage = qvs.stage(Files(run.tables(roles.MATCHES_BY, one.name)), options=recipe.scoring)
        run.add(stage, roles.SCORES_BY, variant=one.name)


def wire_tags(recipe: Recipe, run: Run) -> None:
    """Let a vision model name what the images of each model show; what the others have spent is off the budget."""
    wanted = recipe.tags
    if wanted is None:
        return
    sample = ImageSample(None if wanted.images == "all" else wanted.images, recipe.seed)
    slot = asks(count=partial(most_images, recipe, run, sample.images))
    for name in run.models:
        images, llm = run.table(roles.IMAGES, name), bought(run, wanted, roles.TAGS, name, budget="tags")
        tagging = tag.stage(images, run.table(roles.CSPACE), judge=wanted.judge, sample=sample, llm=llm)
        run.add(tagging, roles.TAGS, name, plan=slot)


def most_images(recipe: Recipe, run: Run, sample: int | None) -> int | None:
    """Say how many images of a model there are at most to ask about, where the prompts are known."""
    every = all_images(recipe, run, recipe.images)
    return every if every is None or sample is None else min(every, sample * len(recipe.concepts))


MAIN = "main"  # What the encoder that the scores are made with is called beside the others

LEVELS = (("concept",), ("country",))  # Of what the means of faithfulness are, besides all prompts of a model


def wire_diversity(recipe: Recipe, run: Run) -> None:
    """Count what is shown, score the models, and compare every two."""
    matches, images, audit = run.tables(roles.MATCHES), run.tables(roles.IMAGES), recipe.audit or Audit()
    run.add(distribution.stage(Files(tuple(matches.values()))), roles.SHOWN)
    mapped, sample = Files(matches), Files([Path(audit.sample)] if audit.sample else ())
    audits = Files({"audits": Path(audit.file)} if audit.file else run.tables(roles.AUDIT))
    scored = qvs.stage(
        mapped, Files(run.tables(roles.QUALITY)), audits, sample, Files(images), truth=Files(run.tables(roles.TRUTH)),
        limits=Files(limits(run)), second=Files(second_instrument(run, audit.second) if audits else {}),
        correction=Correction(audit.pool, recipe.seed, required=False, design=audit.design),
        options=with_corrected_order(recipe),
    )  # fmt: skip
    run.add(scored, roles.SCORES)
    alike = run.models_with(roles.TRUTH) == tuple(run.models)
    compared(recipe, run, roles.SCORES, roles.COMPARISON, [] if alike else list(images.values()))
    if audits:
        options = AuditedOptions(audit.pool, audit.design, recipe.scores.confidence)
        run.add(audited.stage(mapped, audits, sample, options=options), roles.AUDITED)
    if audits and len(recipe.models) > 1:
        run.add(ranks.stage(Numbered([run.table(roles.SCORES)])), roles.RANKS)


def second_instrument(run: Run, name: str | None) -> dict[str, Path]:
    """Name the matches of a second instrument: another encoder, or the tags of a vision model."""
    if name is None:
        return {}
    if name != SECOND_TAGS:
        return run.tables(roles.MATCHES_BY, name)
    return {roles.TAGS.folder(model): path for model, path in run.by_model(roles.TAGS, file="matches.parquet").items()}


def limits(run: Run) -> dict[str, Path]:
    """Name the matches that are floor and ceiling of the scores, where the instrument is diagnosed."""
    if not run.has(roles.DIAGNOSIS):
        return {}
    floors = {roles.MATCHES.folder(floor): run.table(roles.MATCHES, floor) for floor in roles.FLOORS}
    return {**floors, "ceiling": run.table(roles.DIAGNOSIS)}


def with_corrected_order(recipe: Recipe) -> QvsOptions:
    """Score the order at which kernels with artifacts are corrected as well, so that both stand at one order."""
    options = recipe.scoring
    if recipe.audit is None or PAIRS_ORDER in options.orders or not any(kernel[2] for kernel in options.kernels):
        return options
    return replace(options, other_orders=(*options.other_orders, PAIRS_ORDER))


def compared(recipe: Recipe, run: Run, scored: Role, role: Role, images: Sequence[Path] = ()) -> None:
    """Compare every two models; prompts that leave the culture open are few, and the same for everybody."""
    if len(recipe.models) < 2:
        return
    target: Target = "these" if recipe.asks_few else "population"
    options = ComparisonOptions(target=target, confidence=recipe.scores.confidence, seed=recipe.seed)
    run.add(compare.stage(ValueTables([run.values_of(scored)]), Numbered(images), options=options), role)


def wire_faithfulness(recipe: Recipe, run: Run) -> None:
    """Score whether images show what their prompts ask for."""
    if (wanted := recipe.faithfulness) is None:
        return
    plan, scores = recipe.images, recipe.scores
    each = min(plan.repeats * plan.slots, wanted.per_prompt or plan.repeats * plan.slots)
    prompts = partial(prompt_count, recipe, run, plan.kinds)
    looks = Looks(
        run, partial(bought, run, recipe.llm), prompts, lambda _: (count := prompts()) and count * each,
        wanted.questions, wanted.answers, wanted.vqascore, wanted.scorers, wanted.per_prompt, plan.kinds, wanted.of,
    )  # fmt: skip
    looks.write_questions()
    for model in run.models:
        looks.look_at(model)
    means = MeanOptions(LEVELS, scheme="", groups={}, confidence=scores.confidence, benchmark=scores.benchmark)
    looks.score(QuestionOptions(wanted.denominator, means))
    compared(recipe, run, roles.FAITHFULNESS, roles.FAITHFULNESS_COMPARISON)


def wire_people(recipe: Recipe, run: Run) -> None:
    """Let people rate images, and hold metrics and judges against them."""
    asked = recipe.annotations
    if asked is not None and (rated := ratings(run, asked, seed=recipe.seed)) is not None:
        held_against_people(run, asked, rated, seed=recipe.seed)


def ratings(run: Run, asked: Annotations, *, seed: int) -> Path | None:
    """Hand out forms, import answers and put them together; None while nobody has answered."""
    if asked.tables:  # imported elsewhere, with what lies beside them
        first, *more = map(Path, asked.files)
        files = AggregateFiles.beside(AggregateReads(first), more=more)
    elif (taken := imported(run, asked, seed=seed)) is None:
        return None
    else:
        files = taken
    flags, only = known_flags(asked.keep), tuple(sorted(asked.only))
    options = AggregateOptions(asked.pools, flags, asked.confidence, asked.resamples, seed, only)
    return run.add(aggregate_stage(files, options), roles.RATINGS)


def held_against_people(run: Run, asked: Annotations, rated: Path, *, seed: int) -> None:
    """Hold metrics of single images against ratings, and put what judges say right by the answers of people."""
    options = MetaOptions(
        asked.choices, people_only=True, by=asked.pools, confidence=asked.confidence, resamples=asked.resamples,
        seed=seed,
    )  # fmt: skip
    followed = meta.stage(
        ValueTables([run.values_of(roles.FAITHFULNESS)] if run.has(roles.FAITHFULNESS) else []), rated,
        quality=Numbered(list(run.tables(roles.QUALITY).values())),
        matches=Numbered(list(run.tables(roles.MATCHES).values())), prompts=run.table(roles.PROMPTS), options=options,
    )  # fmt: skip
    run.add(followed, roles.META)
    if asked.judged is not None:
        drawn = Files([run.table(roles.RATED_SAMPLE)] if asked.project is None and run.has(roles.RATED_SAMPLE) else [])
        values = ValueTables([run.values_of(roles.FAITHFULNESS)])
        run.add(judged.stage(values, rated, drawn, options=asked.judged), roles.JUDGED)


def imported(run: Run, asked: Annotations, *, seed: int) -> AggregateFiles | None:
    """Import answers, of people or of simulated people who answer first, to the run's own forms unless others."""
    project = handed_out(run, asked, seed=seed) if asked.project is None else Path(asked.project)
    people = None
    if asked.simulated is not None:
        truth, space, prompts = run.tables(roles.TRUTH), run.table(roles.CSPACE), run.table(roles.PROMPTS)
        people = simulated_answers_stage(project, list(truth.values()), prompts, space, asked.simulated, seed=seed)
    simulated = roles.SIMULATED_ANSWERS
    answers = imported_answers(run, project, asked.files, people, answers=simulated, imported=roles.IMPORTED)
    if answers is None:
        return None
    aside, checks = (run.table(roles.IMPORTED, file=f"{name}.parquet") for name in ("quarantine", "annotation_checks"))
    return AggregateFiles(answers, quarantine=(aside,), checks=(checks,))


def handed_out(run: Run, asked: Annotations, *, seed: int) -> Path:
    """Draw images and make their forms; give the folder of the project."""
    images, prompts = list(run.tables(roles.IMAGES).values()), run.table(roles.PROMPTS)
    sample = run.add(rated_sample_stage(images, prompts, count=asked.prompts, seed=seed), roles.RATED_SAMPLE)
    files = ExportFiles(images, prompts, sample=sample, cspace=run.table(roles.CSPACE))
    options = ExportOptions(Quotas(asked.in_region, asked.out_of_region))
    return run.add(export_stage(files, asked.scheme, options, shortlist=SHORTLIST, seed=seed), roles.TO_RATE)


def wire_languages(recipe: Recipe, run: Run) -> None:
    """Score prompts in each language, and how far these lie apart, where the prompts are in several."""
    if len(recipe.prompts.languages) < 2:
        return
    scored = [role for role in (roles.SCORES, roles.FAITHFULNESS, roles.WITHIN) if run.has(role)]
    options = GapOptions(LANGUAGE_COLUMN, confidence=recipe.scores.confidence, seed=recipe.seed)
    values = ValueTables([run.values_of(role) for role in scored])
    run.add(gaps.stage(values, Files([run.table(roles.PROMPTS)]), options=options), roles.LANGUAGES)


def wire_routes(recipe: Recipe, run: Run) -> None:
    """Hold the tags against the nearest artifacts, where there are tags."""
    if recipe.tags is None:
        return
    files = {
        "a": run.by_model(roles.MATCHES),
        "b": run.by_model(roles.TAGS, file="matches.parquet"),
        "judgments": run.by_model(roles.TAGS),
        "quality": run.by_model(roles.QUALITY),
    }
    given = {side: Files({f"{side}-{model}": path for model, path in tables.items()}) for side, tables in files.items()}
    run.add(routes.stage(**given, options=RouteOptions(**asdict(recipe.scoring))), roles.ROUTES)


def wire_stability(recipe: Recipe, run: Run) -> None:
    """Compare the rankings of all instruments, where there are several."""
    if recipe.instruments:
        others = {one.name: run.table(roles.SCORES_BY, variant=one.name) for one in recipe.instruments}
        run.add(stability.stage(Files({MAIN: run.table(roles.SCORES), **others})), roles.STABILITY)


def wire_realism(recipe: Recipe, run: Run) -> None:
    """Score how real and how unlike images look."""
    if recipe.realism is not None:
        options = SpreadOptions(recipe.scores.size, recipe.scores.target, recipe.scores.confidence)
        looks_scored(run, recipe.realism, options, seed=recipe.seed)


def wire_within(recipe: Recipe, run: Run) -> None:
    """Score diversity within countries, of images of prompts that name one."""
    if recipe.within is None and recipe.scores.within == "none":
        return
    mapped_by_model = run.by_model(roles.WITHIN_MATCHES) or run.by_model(roles.MATCHES)
    matches = {roles.MATCHES.folder(model): path for model, path in mapped_by_model.items()}
    options = WithinOptions(**asdict(recipe.scores))
    run.add(within.stage(Files(matches), run.table(roles.PROMPTS), options=options), roles.WITHIN)


def wire_gaps(recipe: Recipe, run: Run) -> None:
    """Score the gaps of a scheme on the values within countries, where the recipe asks for it."""
    if (wanted := recipe.gaps) is None:
        return
    groups = None if wanted.file is None else Path(wanted.file)
    options = GapOptions(wanted.scheme, groups, confidence=recipe.scores.confidence, seed=recipe.seed)
    run.add(gaps.stage(ValueTables([run.values_of(roles.WITHIN)]), options=options), roles.GAPS)


# The cultural space and its prompts, and all stages in order.


def wire_space(recipe: Recipe, run: Run) -> None:
    """Make the cultural space, or import a published one, and the prompts."""
    kept = None if recipe.cspace is not None else built_space(recipe, run)
    if recipe.cspace is not None:
        run.add(taken_space_stage(Path(recipe.cspace)), roles.CSPACE)
    run.add(prompts_of(recipe, run, statements=kept), roles.PROMPTS)


def built_space(recipe: Recipe, run: Run) -> Path:
    """Make the cultural space from a dump; give the table that was released."""
    concepts, dumps = scoped_concepts(recipe), [path for name in recipe.dump for path in dump_files(name)]
    size = works(lambda: sum(path.stat().st_size for path in dumps), "bytes")
    reading = replace(recipe.ingest, languages=(*recipe.ingest.languages, *recipe.prompts.languages))
    graph = run.add(ingest_stage(dumps, reading), roles.GRAPH, plan=size)
    candidates = run.add(extract_stage(graph, concepts), roles.CANDIDATES)
    kept = filtered(recipe, run, concepts, candidates)
    if (review := recipe.review) is not None:
        project = None if review.project is None else Path(review.project)
        files = ReviewFiles(tuple(map(Path, review.files)), project, review.by, review.on)
        removed = run.table(roles.FILTER, file="removed.parquet")
        kept = run.add(review_stage(kept, files, removed=removed), roles.REVIEW)
    options = ReleaseOptions(concepts, recipe.popularity, recipe.release, recipe.include)
    checked = None if recipe.checked is None else Path(recipe.checked)
    run.add(release_stage([kept], options, checked), roles.CSPACE)
    if recipe.card is not None:
        run.add(card_stage(run.folder(roles.CSPACE), hand_path(recipe.card)), roles.CARD)
    return kept


def filtered(recipe: Recipe, run: Run, concepts: tuple[Concept, ...], candidates: Path) -> Path:
    """Let a judge look through the candidates, and propose what they lack."""
    graph, add = run.folder(roles.GRAPH), partial(add_asking, run, recipe.llm)
    judging = partial(filter_candidates.stage, candidates, graph, roots=concepts, judge=recipe.judge)
    kept = add(partial(judging, reasons=recipe.reasons), roles.FILTER)
    if recipe.completion is None:
        return kept
    completing = partial(complete.stage, kept, candidates, run.table(roles.FILTER, file="drops.parquet"), graph)
    proposing = partial(completing, roots=concepts, proposer=recipe.judge, limits=recipe.completion)
    return add(proposing, roles.COMPLETION)


def scoped_concepts(recipe: Recipe) -> tuple[Concept, ...]:
    """Load the root configs; the recipe's countries, where given, take the place of theirs."""
    concepts = tuple(map(load_concept, recipe.concepts))
    if recipe.countries is None:
        return concepts
    return tuple(concept.model_copy(update={"countries": recipe.countries}) for concept in concepts)


def prompts_of(recipe: Recipe, run: Run, *, statements: Path | None) -> Stage:
    """Build the prompts, or import those of a file; the public layout has the run's statements unless others."""
    cspace, prompts = run.table(roles.CSPACE), recipe.prompts.built()
    if recipe.prompts.file is not None:
        return taken_prompts_stage(Path(recipe.prompts.file), cspace, recipe.images.kinds)
    if recipe.cspace is not None:
        return prompts_stage(cspace, prompts, seed=recipe.seed, released=Path(recipe.cspace))
    if prompts.public_layout and prompts.statements is None:
        prompts = replace(prompts, statements=str(statements))
    if prompts.languages != (ENGLISH,) and prompts.labels is None:
        prompts = replace(prompts, labels=str(run.folder(roles.GRAPH) / "items.parquet"))
    return prompts_stage(cspace, prompts, seed=recipe.seed, concepts=scoped_concepts(recipe))


def wire_metrics(recipe: Recipe, run: Run) -> None:
    """Add a stage for every family; what it reads are tables of the run, by the names of its fields."""
    tables = {
        "images": run.tables(roles.IMAGES),
        "judgments": run.tables(roles.TAGS) | run.tables(roles.ANSWERS) | run.tables(roles.VQASCORE),
        "matches": run.tables(roles.MATCHES),
        "prompts": {"prompts": run.table(roles.PROMPTS)},
        "quality": run.tables(roles.QUALITY),
        "values": {"values-0": run.values_of(roles.SCORES)},
    }
    for name, stated in sorted(recipe.metrics.items()):
        run.add(bound_stage(name, stated, tables, seed=recipe.seed), roles.METRIC, variant=name)


EVALUATION = (
    wire_index, wire_models, wire_diagnosis, wire_instruments, wire_tags, wire_diversity, wire_routes, wire_stability,
    wire_faithfulness, wire_realism, wire_within_images, wire_within, wire_gaps, wire_languages, wire_metrics,
    wire_people,
)  # fmt: skip
"""The parts of a run that evaluates models, each after what it reads."""


def cube(recipe: Recipe, run: Run) -> None:
    """Add the stages of a run; without models it ends with release and prompts."""
    wire_space(recipe, run)
    if recipe.models:
        recipe = with_answers(recipe, run)
        for part in EVALUATION:
            part(recipe, run)
        run.add(report_stage(RunFolders(run.root, run.models, run.stages)), roles.REPORT)


def headline(run: Run) -> Iterable[str]:
    """Say how diverse what each model shows is, where the run has come so far."""
    return headline_lines(RunFolders(run.root, run.models, run.stages)) if run.has(roles.SCORES) else ()


CUBE = RecipeKind(Recipe, cube, headline)


def looks_scored(run: Run, wanted: Realism, options: SpreadOptions, *, seed: int) -> None:
    """Embed real and generated images, measure batches, and score how real and how unlike images look."""
    real, encoder = real_images(run, wanted), features_of(wanted.encoder)
    run.add(embed_stage(EmbedSource(real), encoder=encoder), roles.VECTORS, roles.REAL_IMAGES)
    for name, table in run.by_model(roles.IMAGES).items():
        run.add(embed_stage(EmbedSource(table), encoder=encoder), roles.VECTORS, name)
        if wanted.classes is not None:
            run.add(embed_stage(EmbedSource(table), encoder=features_of(wanted.classes)), roles.CLASSES, name)
        if wanted.lpips is not None:
            measured = pairs.stage(table, measure=lpips_of(wanted.lpips), size=options.size)
            run.add(measured, roles.PAIRS, name)
    images, prompts = ImageTables(run.tables(roles.IMAGES)), run.table(roles.PROMPTS)
    vectors = VectorFolders(run.tables(roles.VECTORS))
    beside_real = realism.stage(
        VectorFolder(run.folder(roles.VECTORS, roles.REAL_IMAGES)), vectors, images, real, prompts,
        ProbabilityFolders(probabilities(run, wanted)),
        options=wanted.scoring(seed=seed, confidence=options.confidence),
    )  # fmt: skip
    run.add(beside_real, roles.REALISM)
    distances = PairFolders(run.tables(roles.PAIRS))
    run.add(spread.stage(images, vectors, distances, prompts, options=options), roles.SPREAD)


def real_images(run: Run, wanted: Realism) -> Path:
    """Find the table of real images, and make it where they are a folder of pictures."""
    if wanted.real is None:
        return run.table(roles.REFERENCES)
    path = Path(wanted.real)
    begins = f"{FOLDER}:"
    if wanted.real.startswith(begins) or (path.is_dir() and not (path / "images.parquet").is_file()):
        spec = wanted.real if wanted.real.startswith(begins) else f"{begins}{wanted.real}"
        return run.add(stage_of(image_folder(spec, None, model=roles.REAL_IMAGES)), roles.REAL)
    return path / "images.parquet" if path.is_dir() else path


def probabilities(run: Run, wanted: Realism) -> dict[str, Path]:
    """Name the class probabilities of each model, for the inception score, where its encoder or another gives them."""
    if wanted.classes is None and parse_spec(wanted.encoder).name != INCEPTION:
        return {}
    found = run.by_model(roles.VECTORS if wanted.classes is None else roles.CLASSES, file="probabilities.npy")
    return {f"probs-{name}": path for name, path in found.items()}
