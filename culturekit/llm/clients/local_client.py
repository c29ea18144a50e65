"""A transformers model in this process, from a folder: texts, and images where the model sees."""

import asyncio
import io
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from PIL import Image as Picture

from culturekit.core.digests import canonical_json, digest_tree
from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.core.torch_places import needed_package
from culturekit.llm.client import Failure, Identity, Image, Outgoing, Rate, Reply, Request, Usage, how_cut
from culturekit.llm.clients.client_options import LocalOptions
from culturekit.llm.json_values import decoded, record, records, text
from culturekit.llm.reply_schema import expected_shape, shape_of
from culturekit.llm.rows import WeighedToken
from culturekit.llm.untrusted import user_message
from culturekit.llm.usage import Counts


class Turn(msgspec.Struct, frozen=True):
    """One question as it was composed."""

    instructions: str
    data: str
    max_new_tokens: int
    seed: int
    temperature: float | None
    top_p: float | None
    weighed: tuple[str, ...] = ()


class _Generated(msgspec.Struct, frozen=True, omit_defaults=True):
    """One reply; `tokens` are how probable it begins with each of some texts, where nothing was generated."""

    text: str
    stop: Literal["end", "length", "time"]
    input_tokens: int
    output_tokens: int
    tokens: list[WeighedToken] = []


class LocalModel:
    """A model, and what turns chats into its tokens; one generation at a time."""

    def __init__(self, folder: Path, *, device: str, dtype: str) -> None:
        """Load both from the folder alone."""
        needed = partial(needed_package, kind="client local", extra="embed")
        self.torch, transformers = needed("torch"), needed("transformers")
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        self.sees = getattr(config, "vision_config", None) is not None
        kind = transformers.AutoModelForImageTextToText if self.sees else transformers.AutoModelForCausalLM
        words = transformers.AutoProcessor if self.sees else transformers.AutoTokenizer
        self.transformers = transformers
        self.words: Any = words.from_pretrained(folder, local_files_only=True)
        self.tokenizer: Any = self.words.tokenizer if self.sees else self.words
        self.device = device if device != "auto" else "cuda" if self.torch.cuda.is_available() else "cpu"
        chosen = dtype if dtype == "auto" else getattr(self.torch, dtype)
        self.model: Any = kind.from_pretrained(folder, local_files_only=True, dtype=chosen).to(self.device).eval()
        self.has_template = bool(getattr(self.words, "chat_template", None))

    def reply(self, turn: Turn, images: Sequence[Image], *, seconds: float, stopped: threading.Event) -> _Generated:
        """Generate one reply, the likeliest tokens or drawn from a seed; stop when told, or when the time is over.

        Where texts are to be weighed, nothing is generated.
        """
        if images and not self.sees:
            raise UsageError("this model sees no images", found=f"{len(images)} images", hint="Choose a vision model.")
        inputs = self.tokens(turn, images).to(self.device)
        length = int(inputs["input_ids"].shape[1])
        if turn.weighed:
            found = self.weighed(inputs, turn.weighed)
            return _Generated(max(found, key=lambda item: item.logprob).token, "end", length, 1, found)
        until, struck = time.monotonic() + seconds, False

        def over(tokens: Any, scores: Any, **_: Any) -> Any:  # noqa: ANN401 - tensors
            nonlocal struck
            struck = struck or stopped.is_set() or time.monotonic() > until
            return self.torch.full((tokens.shape[0],), struck, dtype=self.torch.bool, device=tokens.device)

        drawn: dict[str, Any] = {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        if turn.temperature is not None:
            drawn = {"do_sample": True, "temperature": turn.temperature, "top_p": turn.top_p or 1.0, "top_k": 0}
        configured, pad = self.model.generation_config.eos_token_id, self.tokenizer.pad_token_id
        listed = configured if isinstance(configured, list) else [configured]
        ends = {token for token in (*listed, self.tokenizer.eos_token_id) if token is not None}
        with self.torch.inference_mode(), self.torch.random.fork_rng():
            self.torch.manual_seed(turn.seed)
            sequences = self.model.generate(
                **inputs,
                **drawn,
                max_new_tokens=turn.max_new_tokens,
                stopping_criteria=self.transformers.StoppingCriteriaList([over]),
                pad_token_id=min(ends, default=None) if pad is None else pad,  # generation asks for it
            )
        tokens = sequences[0, length:].tolist()
        stop: Literal["end", "length", "time"] = "time" if struck else "length"
        if tokens and tokens[-1] in ends:
            stop = "end"
        return _Generated(self.tokenizer.decode(tokens, skip_special_tokens=True), stop, length, len(tokens))

    def tokens(self, turn: Turn, images: Sequence[Image]) -> Any:  # noqa: ANN401 - a batch of tensors
        """Write a question as the model was taught to read it."""
        if not self.has_template:
            return self.tokenizer(f"{turn.instructions}\n\n{turn.data}\n", return_tensors="pt")
        pictures = [Picture.open(io.BytesIO(image.content)).convert("RGB") for image in images]
        content: Any = turn.data
        if self.sees:
            content = [{"type": "image"} for _ in pictures] + [{"type": "text", "text": turn.data}]
        instructions: Any = [{"type": "text", "text": turn.instructions}] if self.sees else turn.instructions
        chat = [{"role": "system", "content": instructions}, {"role": "user", "content": content}]
        written = self.words.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
        if self.sees:
            return self.words(text=[written], images=pictures or None, return_tensors="pt", add_special_tokens=False)
        return self.tokenizer(written, return_tensors="pt", add_special_tokens=False)

    def weighed(self, inputs: Mapping[str, Any], texts: Sequence[str]) -> list[WeighedToken]:
        """Weigh texts that a reply may begin with, each by all of its tokens.

        Texts that are the same tokens count once, and so does one that only goes on where another ends: the
        probabilities add up to at most 1. One with letters that the tokenizer does not know counts nothing.
        """
        written = {text: tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts}
        unknown = self.tokenizer.unk_token_id
        chosen = distinct({text: ids for text, ids in written.items() if unknown is None or unknown not in ids})
        if not chosen:
            raise UsageError("the model's tokenizer can write none of these texts", found=", ".join(map(repr, texts)))
        after: dict[tuple[int, ...], Any] = {}
        found = []
        for words, tokens in chosen.items():
            total = 0.0
            for index, token in enumerate(tokens):
                if tokens[:index] not in after:
                    after[tokens[:index]] = self._next_token(inputs, tokens[:index])
                total += float(after[tokens[:index]][token])
            found.append(WeighedToken(words, min(total, 0.0)))
        return found

    def _next_token(self, inputs: Mapping[str, Any], prefix: tuple[int, ...]) -> Any:  # noqa: ANN401 - a tensor
        """Return the log probability of every token after the question and a beginning of the reply."""
        torch, given, ids = self.torch, dict(inputs), inputs["input_ids"]
        added = torch.tensor([prefix], dtype=ids.dtype, device=ids.device)
        if self.model.config.is_encoder_decoder:
            start = torch.full((1, 1), self.model.config.decoder_start_token_id, dtype=ids.dtype, device=ids.device)
            given["decoder_input_ids"] = torch.cat([start, added], dim=1)
        elif prefix:
            for name, value in inputs.items():
                if getattr(value, "shape", None) == ids.shape:  # attention goes to what is added too
                    more = torch.full_like(value[:, : len(prefix)], int(name == "attention_mask"))
                    given[name] = torch.cat([value, added if name == "input_ids" else more], dim=1)
        with torch.inference_mode():
            logits = self.model(**given).logits[0, -1]
        return torch.log_softmax(logits.double(), dim=-1).cpu()


def distinct(written_texts: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Keep texts of which none begins as another one does that is whole."""
    kept: dict[str, tuple[int, ...]] = {}
    for words, tokens in sorted(written_texts.items(), key=lambda item: (len(item[1]), item[0])):
        if tokens and not any(tokens[: len(other)] == other for other in kept.values()):
            kept[words] = tokens
    return kept


class LocalClient:
    """Asks a model on this machine, one question at a time."""

    rate = Rate(0.0, 0.0, source="this machine")
    caveat = "A model in this process is held to no schema while it writes: its replies are only checked afterwards."

    def __init__(self, folder: Path, options: LocalOptions) -> None:
        """Name the folder; the model is loaded on first use."""
        self.folder = folder
        self.settings = options
        self.quota = options.quota
        self.loaded: LocalModel | None = None
        self.turn = threading.Lock()

    @cached_property
    def identity(self) -> Identity:
        """Know the model by the content of its folder, wherever it lies."""
        content, _, _ = digest_tree(self.folder)
        return Identity("local", "", "generate", f"{self.folder.name}@{content[:16]}")

    @property
    def model(self) -> str:
        """What exactly answers."""
        return self.identity.model

    @property
    def options(self) -> Mapping[str, object]:
        """What decides the answers."""
        chosen = self.settings
        named = ("temperature", "top_p", "seed", "max_tokens", "dtype")
        return {name: value for name in named if (value := getattr(chosen, name)) is not None}

    def ready(self) -> None:
        """Load the model.

        Raises:
            MissingDependency: torch or transformers is not installed.
        """
        with self.turn:
            if self.loaded is None:
                self.loaded = LocalModel(self.folder, device=self.settings.device, dtype=self.settings.dtype)

    def compose(self, request: Request) -> Outgoing:
        """Write down all that decides the reply."""
        limit = self.settings.max_tokens or request.max_tokens
        instructions = request.instructions
        if not request.weighed:  # nothing else holds the model to the shape
            shape = expected_shape(shape_of(request.schema_type).root)
            instructions += f"\n\nReply with nothing but one JSON object of this shape:\n{shape}"
        body: dict[str, object] = {
            "instructions": instructions,
            "data": user_message(request.data),
            "images": [image.sha256 for image in request.images],
            "max_new_tokens": limit,
            "seed": self.settings.seed + request.sample,
            "dtype": self.settings.dtype,
            "temperature": self.settings.temperature,
            "top_p": self.settings.top_p,
            **({"weighed": list(request.weighed)} if request.weighed else {}),
        }
        return Outgoing(canonical_json(body), request.images, request.sample, limit)

    async def send(self, outgoing: Outgoing) -> bytes:
        """Generate in a thread of its own; it is asked to stop when nobody waits for it any more."""
        stopped = threading.Event()
        try:
            return await asyncio.to_thread(self.generate, outgoing, stopped)
        except asyncio.CancelledError:
            stopped.set()
            raise

    def generate(self, outgoing: Outgoing, stopped: threading.Event) -> bytes:
        """Generate one reply."""
        self.ready()
        body = msgspec.json.decode(outgoing.body, type=Turn)
        with self.turn:
            if self.loaded is None or stopped.is_set():
                raise Failure("connection", "the question was called off")
            reply = self.loaded.reply(body, outgoing.images, seconds=self.settings.timeout, stopped=stopped)
        if reply.stop == "time":
            raise Failure("timeout", f"no whole reply within {self.settings.timeout:g} s")
        return msgspec.json.encode(reply)

    def read(self, raw: bytes) -> Reply:
        """Read a reply as `send` wrote it."""
        body = record(decoded(raw))
        if "text" not in body:
            return Reply("", stop="unreadable", detail="not a reply of this client")
        reply_text = text(body["text"])
        counts = Counts(body)
        usage = Usage(counts.take("input_tokens") or 0, counts.take("output_tokens") or 0)
        if body.get("stop") == "length":
            return Reply(reply_text, usage, "length", how_cut(reply_text), self.model)
        pairs = [(text(item.get("token")), item.get("logprob")) for item in records(body.get("tokens"))]
        tokens = tuple((token, float(value)) for token, value in pairs if isinstance(value, int | float))
        return Reply(reply_text, usage, "end", "", self.model, tokens)

    async def close(self) -> None:
        """Let go of the model."""
        self.loaded = None


def make(spec: Spec) -> LocalClient:
    """Make the client; nothing is loaded yet."""
    options = spec.read(LocalOptions)
    folder = Path(spec.target)
    if not spec.target or not (folder / "config.json").is_file():
        raise UsageError(
            "there is no model in this folder",
            where=spec.target or "local",
            expected="local:FOLDER, with a config.json in it",
            hint="Nothing is downloaded here: fetch the model first.",
        )
    return LocalClient(folder, options)
