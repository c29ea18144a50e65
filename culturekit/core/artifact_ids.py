"""Ids of artifacts that no item of Wikidata stands for: who named them, and a slug of the name."""

OF_A_MODEL = "LLM:"
OF_A_LIST = "list:"  # a person's own file


def has_no_item(artifact_id: str) -> bool:
    """Tell whether an id is one that culturekit gives to artifacts without an item."""
    return artifact_id.startswith((OF_A_MODEL, OF_A_LIST)) and not artifact_id.endswith(":")


def without_prefix(artifact_id: str) -> str:
    """Give an id without the word for who named the artifact."""
    return artifact_id.removeprefix(OF_A_MODEL).removeprefix(OF_A_LIST)
