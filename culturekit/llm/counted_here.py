"""The cost of a reply whose server counts nothing."""

from culturekit.llm.client import Usage

__all__ = ["usage_of_text"]

BYTES_A_TOKEN = 4


def usage_of_text(text: str) -> Usage:
    """Estimate the tokens of a reply's text, one for four bytes; the tokens of the question are not known from it."""
    return Usage(output_tokens=-(-len(text.encode("utf-8", "surrogatepass")) // BYTES_A_TOKEN), counted="here")
