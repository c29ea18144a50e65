"""What can be told about a reply that ran into its limit of tokens."""

__all__ = ["how_cut"]


def how_cut(said: str) -> str:
    """Tell a reply that was too long from one that was only white space, and from one that was only thought."""
    if not said:
        return "nothing was said within the limit of tokens"
    if len(said.rstrip()) * 2 < len(said):
        return "white space up to the limit of tokens"
    return "cut off at the limit of tokens"
