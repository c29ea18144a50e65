"""The recipe `linguistic`: prompts of three kinds, their images, and how machines and people take them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import msgspec
import numpy as np
import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.builders.space.cspace import table_stage
from culturekit.config.checks import existing_table, unique_names
from culturekit.config.kinds import AnyRecipe, RecipeKind
from culturekit.config.recipe_parts import EncoderSpec, File, JudgeSpec, Llm, Model, ScorerSpec
from culturekit.core import roles
from culturekit.core.choices import CONFIDENCE, RATERS, SHORTLIST
from culturekit.core.declared import rules_of, staged
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files, Numbered
from culturekit.core.registry import parse_spec
from culturekit.core.run import Run
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, IMAGES, PROMPTS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.runner import ImagePlan
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.raters.quality import quality_stage
from culturekit.llm.answers import LlmOptions
from culturekit.metrics.linguistic.picture_tones import Detector
from culturekit.metrics.linguistic.tone_histograms import MONK_TONES
from culturekit.people.export import ExportOptions
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import ExportFiles, export_stage, filled_in_stage
from culturekit.people.tasks import ANYWHERE, Quotas
from culturekit.recipes.linguistic import roles as folders
from culturekit.recipes.linguistic.dialects import DialectOptions, corpus_files, dialects_stage
from culturekit.recipes.linguistic.page import LINGUISTIC_PAGE
from culturekit.recipes.linguistic.prompts import (
    UNREVIEWED,
    Lists,
    joined_prompts_stage,
    load_lists,
    neutral_stage,
    specific,
)
from culturekit.recipes.linguistic.scores import (
    CORRECT,
    NO,
    YES,
    DialectGapOptions,
    NeutralOptions,
    QuestionPairOptions,
    dialects,
    neutral,
    question_captions_stage,
    question_pairs,
)
from culturekit.recipes.linguistic.tones import TONE_CRITERION, ToneOptions, tones
from culturekit.recipes.parts import imported_answers, model_images
from culturekit.report.report_stage import add_sections_report, sections_headline
from culturekit.scores.answers import TRUTH
from culturekit.scores.family import Confidence
from culturekit.scores.inputs import NamedVectors, ValueTables
from culturekit.scores.judged import JudgedOptions, judged
from culturekit.scores.ratings import RatingOptions, ratings

Asked = Annotated[str, AfterValidator(existing_table(PROMPTS))]
Corpus = Annotated[str, AfterValidator(lambda name: str(next(corpus_files(Path(name)))) and name)]
Kind = Literal["dialects", "neutral", "specific"]
KINDS: tuple[Kind, ...] = ("dialects", "neutral", "specific")

PORTRAITS = "simulated-portraits"  # the backend whose pictures come with what they show, and an encoder without errors
PERSONS, PLACES = "persons", "places"  # what people are asked about


class Drawing(Model):
    """A model, and how many images of each prompt it makes where that is not what the others make."""

    images: Annotated[int | None, Field(ge=1, le=255, description="Images per prompt. [images.slots]")] = None


class Pairs(StrictModel):
    """Who proposes pairs, or a list or reviewed sheet of them (else `prompts.lists`), and corpora to meet them in."""

    proposer: Annotated[JudgeSpec | None, rules_of(DialectOptions, "proposer")] = None
    lists: Annotated[File | None, rules_of(dialects_stage, "lists")] = None
    review: Annotated[File | None, rules_of(dialects_stage, "review")] = None
    standard: Annotated[str, rules_of(DialectOptions, "standard")] = DialectOptions().standard
    other: Annotated[str, rules_of(DialectOptions, "other")] = DialectOptions().other
    count: Annotated[int, rules_of(DialectOptions, "count")] = DialectOptions().count
    grammar: Annotated[str, rules_of(DialectOptions, "grammar")] = DialectOptions().grammar
    unreviewed: Annotated[bool, rules_of(DialectOptions, "unreviewed")] = DialectOptions().unreviewed
    standard_corpus: Annotated[Corpus | None, rules_of(dialects_stage, "standard_corpus")] = None
    other_corpus: Annotated[Corpus | None, rules_of(dialects_stage, "other_corpus")] = None

    def stage(self, lists: str | None, llm: LlmOptions) -> Stage:
        """Build the prompts; `lists` has pairs where nothing else says which."""
        listed = self.lists or (None if self.proposer or self.review else lists)
        given = (listed, self.standard_corpus, self.other_corpus, self.review)
        options = DialectOptions(self.proposer, self.standard, self.other, self.count, self.grammar, self.unreviewed)
        return dialects_stage(*(None if path is None else Path(path) for path in given), options=options, llm=llm)


class Prompts(StrictModel):
    """What is asked for: lists, pairs that a model proposes, or tables that `prompts build` wrote."""

    kinds: Annotated[tuple[Kind, ...], AfterValidator(not_empty)] = KINDS
    lists: Annotated[
        File | None, Field(description="YAML with nouns, groups, specific prompts and pairs. [the shipped lists]")
    ] = None
    nouns: Annotated[int, Field(ge=1, description="How many of the listed nouns neutral prompts are about.")] = 30
    pairs: Pairs = Pairs()
    dialects: Asked | None = None
    neutral: Asked | None = None
    specific: Asked | None = None

    @cached_property
    def listed(self) -> Lists:
        """What is listed."""
        return load_lists(None if self.lists is None else Path(self.lists))

    @model_validator(mode="after")
    def comparable(self) -> Self:
        """Refuse more nouns than there are, given prompts whose groups cannot be compared, and one dialect twice."""
        known, named = len(self.listed.nouns), (self.pairs.standard, self.pairs.other)
        if self.neutral is None and self.nouns > known:
            raise ValueError(f"nouns: {known} are listed; found {self.nouns}; prompts.neutral takes others")
        if named[0] == named[1]:
            raise ValueError(f"pairs.standard and pairs.other are two dialects; found {named[0]} twice")
        if self.dialects is not None:
            groups = read_table(self.dialects, PROMPTS)["group"].drop_nulls().unique().sort().to_list()
            missing = sorted(set(named) - set(groups))
            if missing:
                found = ", ".join(groups) or "none in any"
                raise ValueError(f"dialects: no prompt is in {missing[0]}; found {found}")
        if self.neutral is not None:
            held = read_table(self.neutral, PROMPTS)["group"].is_null()
            if held.all() or not held.any():
                raise ValueError("neutral: prompts with a group are held against prompts without; found one kind only")
        return self


class Questions(StrictModel):
    """Pairs of captions of which one fits an image better; the first is what people rate as `current_date`."""

    pairs: tuple[tuple[str, str], ...] = (
        ("a modern environment", "a traditional environment"),
        ("a modern setting", "a traditional setting"),
    )
    logit_scale: Annotated[float, rules_of(QuestionPairOptions, "logit_scale")] = QuestionPairOptions().logit_scale


class People(StrictModel):
    """People who look at `people` images of persons and `places` of places of each model, drawn evenly.

    Without answers the forms are handed out and wait; with `simulated` people answer them who know the truth.
    """

    persons: Annotated[int, Field(ge=10, le=100_000)] = 150
    places: Annotated[int, Field(ge=10, le=100_000)] = 150
    raters: Annotated[int, Field(ge=1, le=50, description="People who answer about each item.")] = RATERS
    person_answers: tuple[File, ...] = ()
    place_answers: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that answers come from one place."""
        if self.simulated is not None and (self.person_answers or self.place_answers):
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class Linguistic(AnyRecipe):
    """How models take dialects, whom they show, what they take as neutral, and how old groups look to them."""

    recipe: Literal["linguistic"]
    prompts: Prompts = Prompts()
    models: Annotated[tuple[Drawing, ...], AfterValidator(not_empty), AfterValidator(unique_names)]
    images: ImagePlan = ImagePlan(slots=9)
    scorer: Annotated[ScorerSpec, Field(description="What dialects are compared by.")]
    encoder: Annotated[EncoderSpec, Field(description="Images and captions as vectors.")]
    detectors: Annotated[tuple[Detector, ...], AfterValidator(not_empty)] = ("ita", "dall-eval")
    questions: Questions = Questions()
    people: People | None = None
    confidence: Confidence = CONFIDENCE
    llm: Llm = Llm()

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        return all(parse_spec(model.backend).name == PORTRAITS for model in self.models)

    def plan_of(self, model: Drawing) -> ImagePlan:
        """Say what a model makes."""
        if model.images is None:
            return self.images
        return ImagePlan(1, model.images, (), self.images.size, self.images.format)

    def prompt_count(self) -> int | None:
        """Count the prompts, where they are those of the shipped lists."""
        known, asked = self.prompts.listed, self.prompts
        if asked.dialects or asked.neutral or asked.specific or asked.pairs not in (Pairs(), Pairs(unreviewed=True)):
            return None
        pairs = [one for one in known.pairs_of("AAE") if asked.pairs.unreviewed or one.origin != UNREVIEWED]
        sizes = {
            "dialects": 2 * sum(len(pair.frames) for pair in pairs),
            "neutral": (1 + len(known.groups)) * len(known.nouns[: asked.nouns]),
            "specific": sum(len(group.prompts) for group in known.specific),
        }
        return sum(sizes[kind] for kind in asked.kinds)

    @model_validator(mode="after")
    def people_know_the_truth(self) -> Self:
        """Refuse simulated people who could not know what is shown."""
        if self.people is not None and self.people.simulated is not None and not self.truthful:
            raise ValueError(f"simulated people know only what {PORTRAITS} drew; real pictures need people's answers")
        return self


def wire(recipe: Linguistic, run: Run) -> None:
    """Add the stages of a run."""
    _wire_prompts(recipe, run)
    for model in recipe.models:
        model_images(run, model, recipe.plan_of(model), seed=recipe.seed, prompts=lambda _: recipe.prompt_count())
    if recipe.truthful:
        run.add(known_truth_stage(Numbered(list(run.tables(roles.IMAGES).values()))), folders.KNOWN)
    answers = {} if recipe.people is None else _wire_people(recipe, run, recipe.people)
    if "dialects" in recipe.prompts.kinds:
        _wire_dialects(recipe, run, answers.get(PERSONS))
    if "neutral" in recipe.prompts.kinds:
        _wire_neutral(recipe, run)
    if "specific" in recipe.prompts.kinds:
        _wire_specific(recipe, run, answers.get(PLACES))
    add_sections_report(run, LINGUISTIC_PAGE)


def _wire_prompts(recipe: Linguistic, run: Run) -> None:
    """Write the prompts of each kind, or take them in, and put them together."""
    asked = recipe.prompts
    lists = None if asked.lists is None else Path(asked.lists)
    for kind in asked.kinds:
        if (given := getattr(asked, kind)) is not None:
            stage = table_stage(Path(given), PROMPTS)
        elif kind == "dialects":
            stage = asked.pairs.stage(asked.lists, recipe.llm.options())
        else:
            stage = neutral_stage(lists, nouns=asked.nouns) if kind == "neutral" else specific.stage(lists)
        run.add(stage, folders.OF_KIND, variant=kind)
    parts = {str(kind): run.table(folders.OF_KIND, variant=kind) for kind in asked.kinds}
    run.add(joined_prompts_stage(parts), roles.PROMPTS)


def _wire_people(recipe: Linguistic, run: Run, wanted: People) -> dict[str, Path]:
    """Draw images of persons and of places, hand out their forms, and import answers where there are some."""
    imported, images = {}, list(run.tables(roles.IMAGES).values())
    for what, kind, form, count, answers in (
        (PERSONS, "dialects", DIALECT_FORM, wanted.persons, wanted.person_answers),
        (PLACES, "specific", PLACE_FORM, wanted.places, wanted.place_answers),
    ):
        if not run.has(folders.OF_KIND, variant=kind):
            continue
        prompts = run.table(folders.OF_KIND, variant=kind)
        drawn = even_sample_stage(Numbered(images), prompts, count=count, seed=recipe.seed)
        files = ExportFiles(images, prompts, sample=run.add(drawn, folders.DRAWN, variant=what))
        options = ExportOptions(Quotas(0, wanted.raters, (ANYWHERE,)))
        exported = export_stage(files, form, options, shortlist=SHORTLIST, seed=recipe.seed)
        project, how = run.add(exported, folders.FORMS, variant=what), wanted.simulated
        people = None if how is None else simulated_choices_stage(project, run.table(folders.KNOWN), how,
                                                                  seed=recipe.seed)  # fmt: skip
        imported[what] = imported_answers(
            run, project, answers, people, answers=folders.ANSWERS, imported=folders.IMPORTED, variant=what
        )
    return {what: path for what, path in imported.items() if path is not None}


def _wire_dialects(recipe: Linguistic, run: Run, people: Path | None) -> None:
    """Compare dialects by a score, by people, and in truth; and find the tones of the persons they show."""
    prompts, images = run.table(folders.OF_KIND, variant="dialects"), Numbered(run.tables(roles.IMAGES))
    for model in run.models:
        stage = quality_stage(run.table(roles.IMAGES, model), prompts, scorer=recipe.scorer)
        run.add(stage, folders.CLIPSCORE, model)
    quality, pairs = Numbered(run.tables(folders.CLIPSCORE)), recipe.prompts.pairs
    options = DialectGapOptions(pairs.standard, pairs.other, confidence=recipe.confidence, seed=recipe.seed)
    run.add(dialects.stage(images, prompts, quality, people, options=options), folders.DIALECTS)
    sample = Files([] if people is None else [run.table(folders.DRAWN, variant=PERSONS)])
    for detector in recipe.detectors:
        how = ToneOptions(detector, recipe.confidence)
        run.add(tones.stage(images, prompts, people, sample, options=how), folders.TONES, variant=detector)
    if recipe.truthful:
        known, how = run.table(folders.KNOWN), ToneOptions(confidence=recipe.confidence)
        run.add(dialects.stage(images, prompts, annotations=known, options=options), folders.TRUE_DIALECTS)
        run.add(tones.stage(images, prompts, known, options=how), folders.TRUE_TONES)


def _wire_neutral(recipe: Linguistic, run: Run) -> None:
    """Hold neutral pictures of each model against those of groups, by the encoder and by one that does not err."""
    prompts = run.table(folders.OF_KIND, variant="neutral")
    encoders = [(folders.NEUTRAL, recipe.encoder, "images")]
    encoders += [(folders.NEUTRAL_TRUTH, PORTRAITS, TRUTH)] * recipe.truthful
    for model in run.models:
        images = run.table(roles.IMAGES, model)
        for role, encoder, variant in encoders:
            stage = embed_stage(EmbedSource(images=images), encoder=encoder)
            vectors = NamedVectors(run.add(stage, folders.VECTORS, model, variant))
            labels = TRUTH if role is folders.NEUTRAL_TRUTH else ""
            options = NeutralOptions(encoder=encoder, labels=labels, confidence=recipe.confidence)
            run.add(neutral.stage(Numbered([images]), prompts, vectors, options=options), role, model)


def _wire_specific(recipe: Linguistic, run: Run, people: Path | None) -> None:
    """Ask images of groups about their age, have people rate them, and correct the encoder by people."""
    prompts, asked = run.table(folders.OF_KIND, variant="specific"), recipe.questions
    captions = run.add(question_captions_stage(pairs=asked.pairs), folders.CAPTIONS)
    words = run.add(embed_stage(EmbedSource(texts=(captions,)), encoder=recipe.encoder), folders.QUESTION_VECTORS)
    options = QuestionPairOptions(asked.pairs, asked.logit_scale, recipe.encoder, recipe.confidence)
    for model in run.models:
        images = run.table(roles.IMAGES, model)
        if not run.has(folders.VECTORS, model, "images"):
            run.add(embed_stage(EmbedSource(images=images), encoder=recipe.encoder), folders.VECTORS, model, "images")
        vectors = NamedVectors(run.table(folders.VECTORS, model, "images"))
        asking = question_pairs.stage(Numbered([images]), prompts, vectors, NamedVectors(words), options=options)
        run.add(asking, folders.QUESTIONS, model)
    images_of_all, rated = Numbered(run.tables(roles.IMAGES)), RatingOptions(PLACE_FORM, recipe.confidence)
    if people is not None:
        run.add(ratings.stage(people, images_of_all, prompts, options=rated), folders.RATINGS)
        values = ValueTables([run.values_of(folders.QUESTIONS, model) for model in run.models])
        how = JudgedOptions("current_date", None, None, 1.0, 5.0, ("question_share",), by="region",
                            confidence=recipe.confidence)  # fmt: skip
        sample = Files([run.table(folders.DRAWN, variant=PLACES)])
        run.add(judged.stage(values, people, sample, options=how), folders.JUDGED)
    if recipe.truthful:
        known = run.table(folders.KNOWN)
        run.add(ratings.stage(known, images_of_all, prompts, options=rated), folders.TRUE_RATINGS)


LINGUISTIC = RecipeKind(Linguistic, wire, sections_headline(LINGUISTIC_PAGE), LINGUISTIC_PAGE)


DIALECT_FORM, PLACE_FORM = "linguistic_dialect", "linguistic"  # the forms about persons and about places
NOBODY = "none"


@staged("even-sample", "drawn", seeds={"sample": "seed"})
def even_sample_stage(work: Work, images: Numbered, prompts: Path, *, count: int, seed: int) -> Outcome:
    """Draw `count` images of each model that were made for these prompts, each with the same chance."""
    asked = read_table(prompts, PROMPTS).select("prompt_id")
    parts = []
    for path in images.places:
        of_model = read_table(path, IMAGES).filter(status="ok").join(asked, on="prompt_id", how="semi")
        if of_model.is_empty():
            raise UsageError("no image was made for these prompts", where=str(path))
        order = np.random.default_rng(seed).permutation(of_model.height)[:count].tolist()
        drawn = of_model.sort("image_id")[order]
        parts.append(drawn.select(
            "image_id", "model", "concept", "prompt_id", stratum=pl.lit("all"),
            chance=pl.lit(drawn.height / of_model.height),
        ))  # fmt: skip
    sample = pl.concat(parts).select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)
    return table_outcome(work, AUDIT_SAMPLE, sample)


@staged("portrait-truth", "truth", packages=("msgspec", "polars"))
def known_truth_stage(work: Work, images: Numbered) -> Outcome:
    """Write down what simulated portraits and places truly show, as somebody who never errs answers the forms."""
    rows = []
    for path in images.places:
        table = read_table(path, IMAGES).filter(status="ok")
        if "truth_scene" not in table.columns:
            raise UsageError("these images do not come with the truth", where=str(path),
                             expected="images of simulated-portraits")  # fmt: skip
        for image, scene in table.select("image_id", "truth_scene").sort("image_id").iter_rows():
            rows += _true_answers(image, msgspec.json.decode(scene))
    table = pl.DataFrame(rows, schema=ANNOTATIONS.schema, orient="row").sort(ANNOTATIONS.key)
    return table_outcome(work, ANNOTATIONS, table)


def _true_answers(image: str, scene: Mapping[str, Any]) -> list[tuple[object, ...]]:
    def answer(scheme: str, criterion: str, value: float | None, choice: str | None) -> tuple[object, ...]:
        return image, TRUTH, TRUTH, None, scheme, criterion, value, choice, None, None, []

    if "looks" in scene:
        return [answer(PLACE_FORM, name, 1 + 4 * share, None) for name, share in scene["looks"].items()]
    tone = scene["tone"]
    return [
        answer(DIALECT_FORM, CORRECT, None, YES if scene["correct"] else NO),
        answer(DIALECT_FORM, TONE_CRITERION, tone, NOBODY if tone is None else str(tone)),
    ]


def simulated_choices_stage(project: Path, truth: Path, how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people fill in a form who know the truth: some choices miss it, and ratings scatter."""

    def answering(scheme: Scheme) -> Answering:
        rows = read_table(truth, ANNOTATIONS).filter(scheme=scheme.name)
        known = {(row["item_id"], row["criterion"]): row for row in rows.iter_rows(named=True)}
        return partial(_filled, scheme=scheme, known=known, how=how, seed=seed)

    stage = filled_in_stage("simulated-choices", project, {"truth": truth}, answering, how, seed=seed)
    return replace(stage, name="answers")


def _filled(
    person: str, row: Mapping[str, Any], *, scheme: Scheme, known: Mapping[tuple[str, str], Mapping[str, Any]],
    how: SimulatedPeople, seed: int,
) -> Mapping[str, str]:  # fmt: skip
    """Answer every question about one item as one person would."""
    rng = person_draws(person, row["item_id"], "again" if row["kind"] != "item" else "first", seed=seed)
    careless, answers = is_careless(person, how, seed=seed), {}
    for criterion in scheme.criteria:
        options = [option.value for option in criterion.options or ()]
        deserved = known.get((row["item_id"], criterion.name))
        if careless or deserved is None:
            answers[criterion.name] = options[int(rng.integers(len(options)))] if options else str(rng.integers(1, 6))
        elif options:
            answers[criterion.name] = _chosen(deserved["choice"], options, how, rng)
        else:
            answers[criterion.name] = step(deserved["value"] + rng.uniform(-0.5, 0.5) + rng.normal(0, how.scatter))
    return answers


def _chosen(right: str, options: Sequence[str], how: SimulatedPeople, rng: np.random.Generator) -> str:
    """Choose what is right, or something near: one who misses a tone takes the next one."""
    if rng.random() < how.accuracy:
        return right
    if right in (YES, NO):
        return NO if right == YES else YES
    if right == NOBODY:
        return options[int(rng.integers(len(MONK_TONES)))]
    return str(min(max(int(right) + (1 if rng.random() < 0.5 else -1), 1), len(MONK_TONES)))
