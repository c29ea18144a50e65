"""How probable it is that a model's reply begins with a text: the product over the tokens the text is written in."""

from collections.abc import Mapping, Sequence
from typing import Any

from culturekit.errors import UsageError
from culturekit.llm.clients.token_listing import WeighedToken

__all__ = ["weighed_texts"]

FILLED = {"attention_mask": 1}
"""What stands for a token that is added, in whatever else has a number for each token; 0 elsewhere."""


def weighed_texts(
    torch: Any,  # noqa: ANN401 - a module
    model: Any,  # noqa: ANN401 - a model of transformers
    tokenizer: Any,  # noqa: ANN401 - a tokenizer of transformers
    inputs: Mapping[str, Any],
    texts: Sequence[str],
) -> list[WeighedToken]:
    """Weigh texts that a reply may begin with, each by all of its tokens.

    Texts that are the same tokens count once, and so does one that only goes on where another ends: the
    probabilities add up to at most 1.
    """
    chosen = distinct({text: written(tokenizer, text) for text in texts})
    if not chosen:
        raise UsageError("the model's tokenizer can write none of these texts", found=", ".join(map(repr, texts)))
    after: dict[tuple[int, ...], Any] = {}
    found = []
    for text, tokens in chosen.items():
        total = 0.0
        for place, token in enumerate(tokens):
            if tokens[:place] not in after:
                after[tokens[:place]] = next_token(torch, model, inputs, tokens[:place])
            total += float(after[tokens[:place]][token])
        found.append(WeighedToken(text, min(total, 0.0)))
    return found


def written(tokenizer: Any, text: str) -> tuple[int, ...]:  # noqa: ANN401 - a tokenizer of transformers
    """Write a text in tokens; nothing where it has letters that the tokenizer does not know."""
    tokens = tuple(tokenizer(text, add_special_tokens=False)["input_ids"])
    return () if tokenizer.unk_token_id is not None and tokenizer.unk_token_id in tokens else tokens


def distinct(written_texts: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Keep texts of which none begins as another one does that is whole."""
    kept: dict[str, tuple[int, ...]] = {}
    for text, tokens in sorted(written_texts.items(), key=lambda item: (len(item[1]), item[0])):
        if tokens and not any(tokens[: len(other)] == other for other in kept.values()):
            kept[text] = tokens
    return kept


def next_token(torch: Any, model: Any, inputs: Mapping[str, Any], prefix: tuple[int, ...]) -> Any:  # noqa: ANN401
    """Give the log probability of every token after the question and a beginning of the reply."""
    given = dict(inputs)
    ids = given["input_ids"]
    added = torch.tensor([prefix], dtype=ids.dtype, device=ids.device)
    if model.config.is_encoder_decoder:
        start = torch.full((1, 1), model.config.decoder_start_token_id, dtype=ids.dtype, device=ids.device)
        given["decoder_input_ids"] = torch.cat([start, added], dim=1)
    elif prefix:
        length = ids.shape[1]
        for name, value in inputs.items():
            if getattr(value, "shape", None) == (1, length) and name != "input_ids":
                given[name] = torch.cat([value, torch.full_like(value[:, : len(prefix)], FILLED.get(name, 0))], dim=1)
        given["input_ids"] = torch.cat([ids, added], dim=1)
    with torch.inference_mode():
        logits = model(**given).logits[0, -1]
    return torch.log_softmax(logits.double(), dim=-1).cpu()
