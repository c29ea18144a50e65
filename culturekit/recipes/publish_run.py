"""A finished run as a dataset on the Hub: the images that models drew, the scores, and a card that says what they are.

What may not be passed on is never read: texts of CulturalAtlas (CC BY-NC) stand in the prompts and images' rows of the
recipes that use them, and photographs, references and a cultural space are other people's.
"""

import importlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha1, sha256
from pathlib import Path
from typing import Any

import yaml

from culturekit.core import roles
from culturekit.core.errors import MissingDependency, UpstreamUnavailable, UsageError, argument_error, counted
from culturekit.core.schemas import IMAGES, PROMPTS, SCORES, VALUES
from culturekit.core.stage import Progress
from culturekit.llm.redaction import Secret, key_from_environment, redact
from culturekit.recipes.several_runs import HUB_NAME
from culturekit.report.report_stage import folders_of, recorded
from culturekit.report.run_folders import RunFolders
from culturekit.report.site.pages import model_id
from culturekit.version import VERSION, install_line

HUB = "hub:"
TOKEN = "HF_TOKEN"
ENDPOINT = "HF_ENDPOINT"
CARD = "README.md"
OTHERS = "references, photographs and the cultural space: they are other people's"
MAY_HOLD_TEXTS = "images and prompts: texts of CulturalAtlas, or of collections under CC BY-NC, may stand in them"
BATCH = 100  # files of a commit: a cut upload goes on after the last whole one

DRAWN_FROM_FREE_TEXTS = {"cube", "linguistic"}
"""Recipes whose prompts are sentences of ours or of the person who ran them, so that their images may be shown."""


@dataclass(frozen=True, slots=True)
class Published:
    """What is in a dataset now."""

    url: str
    private: bool  # whether only its owner sees it
    files: Mapping[str, int]  # how many there are of each kind, such as images
    sent: tuple[int, int]  # files that were not there as they are, and their bytes
    left_out: Sequence[str]  # what of the run is not published, and why


def publish_run(root: Path, to: str, *, public: bool, progress: Progress) -> Published:
    """Write images, scores and card of a run as a dataset; what lies there already as it is, is not sent again.

    Args:
        root: folder of a finished run.
        to: `hub:USER/NAME`.
        public: whether anybody may see a dataset that is new; one that is there stays what it is.
        progress: hears how many files are done.
    """
    name = to.removeprefix(HUB)
    if not to.startswith(HUB) or not HUB_NAME.fullmatch(name):
        raise argument_error("to", "hub:USER/NAME, as the Hub writes it", to)
    run, record = folders_of(root), recorded(root)
    backends = {model.name: model.backend for model in record.models}
    shows_images = record.recipe in DRAWN_FROM_FREE_TEXTS
    files = dict(files_of(run, images=shows_images))
    left_out = [OTHERS] if shows_images else [MAY_HOLD_TEXTS, OTHERS]
    card = card_of(run, record.recipe, root.resolve().name, backends, files, left_out).encode()
    token = key_of_hub()
    hub = hub_package()
    api = hub.HfApi(endpoint=os.environ.get(ENDPOINT) or None, token=token.reveal(), library_name="culturekit")
    try:
        url = api.create_repo(name, repo_type="dataset", private=not public, exist_ok=True)
        private = bool(api.repo_info(name, repo_type="dataset").private)
        there = {one.path: one for one in api.list_repo_tree(name, repo_type="dataset", recursive=True)}
        wanted = [(at, path) for at, path in files.items() if not same(there.get(at), path.read_bytes())]
        operations = [hub.CommitOperationAdd(at, str(path)) for at, path in wanted]
        if not same(there.get(CARD), card):
            operations.append(hub.CommitOperationAdd(CARD, card))
        progress.begin(len(operations), "files")
        for first in range(0, len(operations), BATCH):
            part = operations[first : first + BATCH]
            api.create_commit(
                name, part, repo_type="dataset", commit_message=f"culturekit {VERSION}: {root.resolve().name}"
            )
            progress.advance(len(part))
    except _failures() as error:
        raise refused(error, to) from None  # the chain would show the request, and with it the token
    size = sum(path.stat().st_size for _, path in wanted) + len(card) * (len(operations) > len(wanted))
    kinds = Counter(at.partition("/")[0] for at in files)
    return Published(str(url), private, {**kinds, "card": 1}, (len(operations), size), left_out)


def files_of(run: RunFolders, *, images: bool) -> Iterator[tuple[str, Path]]:
    """Give what is published, by its place in the dataset."""
    for table in (SCORES, VALUES):
        file = f"{table.name}.parquet"
        yield f"scores/{file}", run.table(roles.SCORES, file=file)
    if not images:
        return
    yield f"prompts/{PROMPTS.name}.parquet", run.table(roles.PROMPTS)
    for model in run.models:
        folder = run.folder(roles.IMAGES, model)
        yield f"images/{model}/{IMAGES.name}.parquet", folder / f"{IMAGES.name}.parquet"
        for path in run.images(model).filter(status="ok")["path"].unique().sort():
            yield f"images/{model}/{path}", folder / path


def key_of_hub() -> Secret:
    """Read the token from the environment."""
    if not os.environ.get(TOKEN):
        raise UsageError(
            "the Hub asks who publishes", expected=f"a token that may write, in the environment variable {TOKEN}",
            found="none", hint="Make one at https://huggingface.co/settings/tokens; it is never written anywhere.",
        )  # fmt: skip
    return key_from_environment(TOKEN)


def hub_package() -> Any:  # noqa: ANN401 - a package that is not always installed
    """Import the client of the Hub."""
    try:
        return importlib.import_module("huggingface_hub")
    except ModuleNotFoundError as error:
        raise MissingDependency(
            "publishing needs the package huggingface_hub, which is not installed",
            hint=f"Install it with: {install_line('publish')}",
        ) from error


def same(there: Any, content: bytes) -> bool:  # noqa: ANN401 - a file as the Hub describes it
    """Tell whether the Hub has a file with these bytes."""
    if there is None or getattr(there, "size", None) != len(content):
        return False
    if there.lfs is not None:
        return bool(there.lfs.sha256 == sha256(content).hexdigest())
    return bool(there.blob_id == sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest())


def _failures() -> tuple[type[Exception], ...]:
    """Give what the client raises where the Hub refuses or does not answer; releases differ in their HTTP library."""
    refusal = importlib.import_module("huggingface_hub.errors").HfHubHTTPError
    return (OSError, *(one for one in refusal.__mro__ if one.__name__ in {"HfHubHTTPError", "HTTPError"}))


def refused(error: Exception, to: str) -> Exception:
    """Say why the Hub took nothing, or no more."""
    lines = redact(str(error)).strip().splitlines()
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status in {401, 403}:
        return UsageError(
            "the Hub does not let this token write", where=to, found=f"HTTP {status}",
            expected=f"a token in {TOKEN} that may write datasets of this user or organisation",
        )  # fmt: skip
    return UpstreamUnavailable(
        "the Hub did not take the dataset", where=to, found=lines[0] if lines else type(error).__name__,
        hint="Run the same command again: what is there already is not sent again.",
    )  # fmt: skip


def card_of(
    run: RunFolders, recipe: str, name: str, backends: Mapping[str, str], files: Mapping[str, Path],
    left_out: Sequence[str],
) -> str:  # fmt: skip
    """Write the card: settings for the Hub's viewer, and what a reader has to know."""
    has_images = any(at.startswith("images/") for at in files)
    configs = [{"config_name": "scores", "data_files": "scores/scores.parquet", "default": True}]
    configs.append({"config_name": "values", "data_files": "scores/values.parquet"})
    if has_images:
        configs.append({"config_name": "prompts", "data_files": "prompts/prompts.parquet"})
        configs += [
            {"config_name": f"images-{model}", "data_files": f"images/{model}/images.parquet"} for model in run.models
        ]
    head = {"pretty_name": f"culturekit run {name}", "license": "other", "tags": ["culturekit", "text-to-image"]}
    front = yaml.safe_dump({**head, "configs": configs}, sort_keys=False, allow_unicode=True)
    lines = [
        f"---\n{front}---",
        f"# culturekit run {name}",
        f"Scores of {counted(len(run.models), 'models')} by the recipe `{recipe}` of culturekit {VERSION}.",
        "| model | drawn by | images |\n|---|---|---|\n"
        + "\n".join(
            f"| {model} | `{model_id(backends.get(model, 'unknown'), model)}` | "
            f"{sum(at.startswith(f'images/{model}/') for at in files) - 1 if has_images else 'not published'} |"
            for model in run.models
        ),
        "- `scores/scores.parquet`: each score with its interval; `scores/values.parquet`: what it is the mean of.",
    ]
    if has_images:
        lines.append("- `images/MODEL/`: pictures, and a row for each in `images.parquet`; `prompts/`: what was asked.")
    lines += [f"Not here: {'; '.join(left_out)}.", "Images are under the terms of the models that drew them."]
    return "\n\n".join(lines) + "\n"
