"""The stages from prompts to images: drawn by a backend of one's own, or bought, and what that would cost."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl

from culturekit.core.choices import PictureFormat, PromptKind
from culturekit.core.digests import InputRecord, digest_file, read_manifest
from culturekit.core.errors import UsageError
from culturekit.core.lineage import upstream
from culturekit.core.registry import Spec, check_ready, parse_spec, spec_state
from culturekit.core.run import run_part
from culturekit.core.schemas import CSPACE, PROMPTS
from culturekit.core.stage import Asking, Left, Stage
from culturekit.core.tables import prompts_table, read_table, space_table
from culturekit.core.work import Engine, Outcome, Progress, Work
from culturekit.generation.backend import BACKENDS, is_paid
from culturekit.generation.diffusion.diffusers_backend import files_behind
from culturekit.generation.diffusion.diffusers_folder import DIFFUSERS
from culturekit.generation.diffusion.training import (
    DENOISER,
    TuningOptions,
    TuningPlan,
    finetune_stage,
    pairs_in,
    pipeline_of,
    plan_tuning,
    training,
)
from culturekit.generation.folder.folder_detection import (
    KnownPrompts,
    Names,
    Naming,
    find_list,
    guessed,
    naming_of,
    stated_list,
)
from culturekit.generation.folder.folder_listing import Listing, list_folder
from culturekit.generation.folder.folder_plan import FolderPlan, Layout, plan_folder
from culturekit.generation.folder.folder_run import (
    FOLDER,
    Handling,
    Options,
    content_of,
    folder_of,
    hashed,
    take_folder,
)
from culturekit.generation.picture_store import Maker
from culturekit.generation.runner import ImagePlan, Pace, generate, pilot
from culturekit.generation.services.image_client import IMAGE_SERVICES, ImageClient, check_image_price, question_of
from culturekit.generation.services.paid_runner import buy_images, planned_calls
from culturekit.kg.countries import countries, country_files
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.cost_plan import amount
from culturekit.llm.journal_file import key_of
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.prices import check_alive
from culturekit.llm.purse import check_asking
from culturekit.llm.usage import ADDED_BY_SERVERS, estimate

# The stage that trains an adapter for a diffusion pipeline.


def pilot_of(
    folder: Path, options: TuningOptions, out: Path, *, engine: Engine, progress: Progress, wait: bool
) -> TuningPlan:
    """Take two steps, keep nothing of them, and say what all of them would take."""

    def part(work: Work) -> tuple[float, int | None]:
        measured: tuple[float, int | None] = training().measure(pipeline_of(options), pairs, options)
        return measured

    pairs = pairs_in(folder)
    found = run_part(finetune_stage(folder, options), out, part, engine=engine, progress=progress, wait=wait)
    return plan_tuning(options, len(pairs), *(found or ()))


# The stage from a folder of images that exist already to an images table.


@dataclass(slots=True)
class ImageFolder:
    """A folder of images and how its files are named; looked into when it is needed, and then once."""

    root: Path
    options: Options
    prompts: Path | None
    layout: Layout
    kinds: tuple[PromptKind, ...] = ()
    cspace: Path | None = None
    read: tuple[Listing, Naming] | None = field(default=None, init=False)

    @property
    def list_path(self) -> Path | None:
        """The list that says what the files are, stated or found in the folder."""
        if self.options.manifest:
            return stated_list(self.root, self.options.manifest)
        return None if self.options.pattern else find_list(self.root)

    def listing(self) -> tuple[Listing, Naming]:
        """List the folder, nothing hashed yet."""
        naming = naming_of(self.root, pattern=self.options.pattern, manifest=self.options.manifest)
        path, own = self.list_path, ""
        if path is not None and path.resolve().is_relative_to(self.root.resolve()):
            own = path.resolve().relative_to(self.root.resolve()).as_posix()
        return list_folder(self.root, listed=naming.listed.files if naming.listed else (), leave_out=own), naming

    def record(self, final: Path) -> InputRecord:
        """Name the folder by the content of its images."""
        if final.resolve().is_relative_to(self.root.resolve()):
            raise UsageError(
                "the output lies in the folder of images itself", where=str(final),
                expected=f"a place outside {self.root}", hint="Choose another --out.",
            )  # fmt: skip
        listing, naming = self.listing()
        listing = hashed(listing, final.with_name(f".{final.name}.hashes"))
        self.read = listing, naming
        return InputRecord(content_of(listing), "a folder of images")

    def known(self, scratch: Path) -> tuple[KnownPrompts | None, Names]:
        """Read the prompts, and what countries and artifacts are called."""
        called = {c.iso: (c.name, c.adjective, c.iso3) for c in countries().values()}
        artifacts: dict[str, list[str]] = {}
        if self.cspace is not None:
            space = read_table(space_table(self.cspace, scratch), CSPACE).select("artifact_id", "name").unique()
            artifacts = dict(space.sort("artifact_id", "name").group_by("artifact_id").agg("name").iter_rows())
        names = Names(called, artifacts)
        if self.prompts is None:
            return None, names
        table = read_table(prompts_table(self.prompts, scratch), PROMPTS)
        if self.kinds:
            table = table.filter(pl.col("kind").is_in(list(self.kinds)))
        return KnownPrompts(table, names), names

    def plan(self, scratch: Path) -> tuple[Listing, Naming, FolderPlan, KnownPrompts | None]:
        """Say what each file stands for; `scratch` is a folder for tables made from public files."""
        listing, naming = self.read or self.listing()
        known, names = self.known(scratch)
        naming = guessed(naming, listing, known)
        return listing, naming, plan_folder(listing, naming, known, self.layout, names=names), known

    def take(self, work: Work, form: PictureFormat) -> Outcome:
        """Do the work of the stage."""
        listing, naming, plan, _ = self.plan(work.scratch)
        return take_folder(work, listing, naming, plan, Handling(self.options.files, form))


def image_folder(
    backend: str,
    prompts: Path | None,
    *,
    model: str | None = None,
    repeats: int | None = None,
    slots: int | None = None,
    kinds: tuple[PromptKind, ...] = (),
    cspace: Path | None = None,
) -> ImageFolder:
    """Describe a folder by its SPEC and what is stated of its images."""
    BACKENDS.check(backend)
    spec = parse_spec(backend)
    options = spec.read(Options)
    layout = Layout(model, repeats=repeats, slots=slots, first=options.first)
    folder = ImageFolder(folder_of(spec), options, prompts, layout, kinds)
    if prompts is not None and ("{artifact}" in options.pattern or folder.list_path is not None):
        folder.cspace = cspace
    return folder


def stage_of(folder: ImageFolder, *, form: PictureFormat = "png") -> Stage:
    """Take in the images of a folder."""
    path = folder.list_path
    trees: dict[str, Callable[[Path], InputRecord]] = {"folder": folder.record}
    if path is not None:  # named by its content, whatever else lies beside it
        trees["list"] = lambda _: InputRecord(digest_file(path), path.name)
    tables = {"list": path, "prompts": folder.prompts, "cspace": folder.cspace}
    inputs = {role: table for role, table in tables.items() if table is not None}
    told = {"backend": FOLDER, "pattern": folder.options.pattern, **asdict(folder.layout)}
    return Stage(
        "images", "generate", 2, partial(folder.take, form=form),
        {"folder": folder.root, **country_files(), **inputs}, {**told, "kinds": list(folder.kinds), "format": form},
        packages=("numpy", "pillow", "polars"), trees=trees,
    )  # fmt: skip


# options that decide no image, so that a run goes on when they are changed
OF_THE_WAY = ("rpm", "tpm", "price", "image_price", "image_tokens", "timeout", "api_key")


@dataclass(frozen=True, slots=True)
class ImagesPlan:
    """What is to be bought, and what it costs in US dollars.

    Attributes:
        images: All images of the plan.
        calls: The calls that ask for them.
        bought: Calls that the journal answers already: they cost nothing more.
        tokens: Tokens of the rest, in and out; 0 where each image has its price.
        usd: What the rest costs: the listed tokens of each image, and the prompts as estimated.
        most: What surely suffices when nothing has to be asked twice.
        each: What one image costs, its prompt left out.
        source: Where the price is from, and of which day.
    """

    model: str
    mode: str
    images: int
    calls: int
    bought: int
    tokens: int
    usd: float
    most: float
    each: float
    source: str

    @property
    def units(self) -> int:
        """What is asked for."""
        return self.images

    @property
    def left(self) -> Left:
        """What is left to ask."""
        return Left(self.calls - self.bought, self.tokens, self.usd)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        left = self.calls - self.bought
        yield (
            f"{self.images:,} images by {self.model}: {self.calls:,} calls, {self.bought:,} bought already, "
            f"{left:,} left"
        )
        yield f"about {amount(self.usd)} USD ({self.mode}), {amount(self.each)} an image; price: {self.source}"
        yield f"a budget of {amount(self.most, up=True)} USD surely suffices, calls that have to be made twice apart"

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)


def service_of(backend: str, plan: ImagePlan) -> ImageClient:
    """Make the client of a paid backend; nothing is sent."""
    return IMAGE_SERVICES.make(backend, size=plan.size)


def plan_images(
    prompts: Path, plan: ImagePlan, *, backend: str, seed: int, out: Path, batch: bool = False
) -> ImagesPlan:
    """Plan, offline: nothing is sent, and no key is needed.

    Raises:
        UsageError: nobody knows what the images cost.
    """
    client = service_of(backend, plan)
    price = check_image_price(client)
    journal = journal_for(out)
    answered = {one.key for one in read_spending(journal) if one.answered} if journal else set()
    answered |= client.under_way(journal.parent) if journal else set()
    with TemporaryDirectory(prefix="culturekit-plan-") as folder:
        calls = planned_calls(prompts_table(prompts, Path(folder)), plan, client, seed=seed)
    left, sent, bound = [], 0, 0
    for call in calls:
        outgoing = client.compose(question_of(call))
        if key_of(client.identity, outgoing) not in answered:
            left.append(len(call))
            sent += estimate(outgoing)
            bound += len(outgoing.body) + ADDED_BY_SERVERS
    share = price.rate.batch if batch else 1.0
    came = sum(left) * price.tokens

    def dollars(sent: int, came: int) -> float:
        return share * ((sent * price.rate.input + came * price.rate.output) / 1e6)

    return ImagesPlan(
        model=client.model, mode="batch" if batch else "online", images=sum(map(len, calls)), calls=len(calls),
        bought=len(calls) - len(left), tokens=0 if price.by_image else sent + came, usd=dollars(sent, came),
        most=dollars(bound, came + price.room * len(left)), each=share * price.usd, source=price.rate.source,
    )  # fmt: skip


def paid_images_stage(
    prompts: Path, plan: ImagePlan, *, backend: str, model: str, seed: int, llm: LlmOptions = DEFAULTS
) -> Stage:
    """Buy the images of a model; what `llm` says of money and speed decides none of them."""
    client = service_of(backend, plan)
    if llm.batch:
        client.batches()
    spec = parse_spec(backend)
    spec = replace(spec, options={key: value for key, value in spec.options.items() if key not in OF_THE_WAY})

    def planned(out: Path, _: object) -> ImagesPlan:
        check_alive(client.identity, go_on=llm.go_on)
        return plan_images(prompts, plan, backend=backend, seed=seed, out=out, batch=llm.batch)

    def run(work: Work) -> Outcome:
        return buy_images(work, prompts_table(prompts, work.scratch), plan, client, model=model, seed=seed, llm=llm)

    def each() -> float:
        price = check_image_price(client)
        return price.usd * (price.rate.batch if llm.batch else 1.0)

    def before() -> None:
        check_alive(client.identity, go_on=llm.go_on)
        check_image_price(client)
        check_asking(client, go_on=llm.go_on)

    return Stage(
        "images", "generate", 2, run, {"prompts": prompts},
        {**plan.options, "backend": str(spec), "model": model, "service": asdict(client.identity), **client.decides},
        {"images": seed}, packages=("msgspec", "numpy", "pillow", "polars"),
        before=before,
        asking=Asking(backend, "images", free=False, each=each, plan=planned),
    )  # fmt: skip


def cspace_behind(prompts: Path) -> Path | None:
    """Find the cultural space that prompts were built from, where their folder still knows it."""
    manifest = read_manifest(prompts.parent)
    return upstream(prompts.parent, "cspace") if manifest is not None and "cspace" in manifest.inputs else None


def generate_stage(
    prompts: Path,
    plan: ImagePlan,
    *,
    backend: str,
    model: str,
    seed: int,
    cspace: Path | None = None,
    llm: LlmOptions = DEFAULTS,
    adapter: Path | None = None,
) -> Stage:
    """Make the images of a model; a backend that draws from a cultural space has it as an input.

    `llm` says how images of a paid service are bought, which decides none of them. `adapter` is the folder of a stage
    that trains one for the model, perhaps later than this is said.
    """
    adapted(backend, adapter)
    if is_paid(backend):
        return paid_images_stage(prompts, plan, backend=backend, model=model, seed=seed, llm=llm)
    spec, space = parse_spec(backend), None
    if spec.name == FOLDER:
        folder = image_folder(
            backend, prompts, model=model, repeats=plan.repeats, slots=plan.slots, kinds=plan.kinds, cspace=cspace
        )
        return stage_of(folder, form=plan.format)
    inputs = {"prompts": prompts}
    if "cspace" in BACKENDS.find(spec).needs:
        stated = spec.options.get("cspace")
        spec = Spec(spec.name, spec.target, {key: text for key, text in spec.options.items() if key != "cspace"})
        space = Path(stated) if stated else cspace
        if space is not None:
            inputs["cspace"] = space
    if adapter is not None:
        inputs["adapter"] = adapter
    BACKENDS.check(str(spec))
    weights = {"weights": files_behind(spec)} if spec.name == DIFFUSERS else {}
    brought = spec_state(BACKENDS, str(spec)) if BACKENDS.find(spec).plugin else BACKENDS.brought_by(spec)

    def run(work: Work) -> Outcome:
        table = None if space is None else space_table(space, work.scratch)
        maker = Maker(model, adapted(str(spec), adapter), table)
        return generate(work, prompts_table(prompts, work.scratch), plan, maker, seed=seed)

    return Stage(
        "images", "generate", 2, run, inputs,
        {**plan.options, "backend": str(spec), "model": model, **weights, **brought}, {"images": seed},
        packages=("numpy", "pillow", "polars"), before=partial(check_ready, BACKENDS, str(spec)),
    )  # fmt: skip


def adapted(backend: str, adapter: Path | None) -> str:
    """Have a pipeline of diffusers draw with the adapter, or the whole denoiser, that a stage trained."""
    if adapter is None:
        return backend
    spec = parse_spec(backend)
    if spec.name != DIFFUSERS or {"lora", "unet"} & set(spec.options):
        raise UsageError("this backend takes no adapter", expected="diffusers:FOLDER without lora", found=backend)
    whole = adapter / DENOISER  # which a full fine-tune writes
    learnt = {"unet": str(whole)} if whole.is_dir() else {"lora": str(adapter)}
    return str(Spec(spec.name, spec.target, {**spec.options, **learnt}))


def run_pilot(
    prompts: Path, plan: ImagePlan, stage: Stage, out: Path, *, seed: int, engine: Engine, progress: Progress,
    wait: bool = False,
) -> Pace | None:  # fmt: skip
    """Make two images of a stage where its run will go on, and time them; None where all images are there."""

    def part(work: Work) -> Pace | None:
        backend = adapted(str(stage.options["backend"]), stage.inputs.get("adapter"))
        maker = Maker(str(stage.options["model"]), backend)
        return pilot(work, prompts_table(prompts, work.scratch), plan, maker, seed=seed)

    return run_part(stage, out, part, engine=engine, progress=progress, wait=wait)
