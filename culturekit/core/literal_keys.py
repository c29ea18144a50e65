"""Keys and passwords that somebody wrote out, where only the name of an environment variable may stand."""

import re

from culturekit.core.errors import UsageError

# A key by the name of the environment variable that holds it, such as `${OPENAI_API_KEY}`.
NAMED_KEY = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

KEY_NAMES = re.compile(
    r"key|token|auth|bearer|x-api-key|x-goog-api-key"
    r"|(?:.*[_-])?(?:api[_-]?key|(?:access|secret|private)[_-]key|(?:access|api|auth|hf|id|refresh)[_-]token"
    r"|secret|password|passwd|credentials?|authorization)",
    re.IGNORECASE,
)

# What may be a misspelled name of a key.
LIKE_KEY = re.compile(r"key|kye|tok|secr|pas|pwd|auth|cred|login|bear", re.IGNORECASE)

# What the keys of known services look like.
SHAPES = re.compile(
    r"\b(?:sk|pk|rk|gsk|hf|xai|nvapi|pplx|csk|tgp|fw|r8|ghp|gho|ghu|ghs|ghr|github_pat|glpat|xox[abpr])[-_]"
    r"(?=[A-Za-z_-]*[0-9])[A-Za-z0-9_-]{12,}"
    r"|\bAIza[0-9A-Za-z_-]{20,}|\bya29\.[0-9A-Za-z_-]{10,}|\b(?:AKIA|ASIA)[0-9A-Z]{12,}"
    r"|\beyJ[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]{8,}\.[0-9A-Za-z_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----"
)

LOGIN = re.compile(r"(?<=://)[^/@\s\"'<>]+(?=@)")
HEADER = re.compile(r"(?i)\b(bearer|basic)(\s+|%20)(?=\S*[0-9=])[A-Za-z0-9._~+/=-]{8,}")
ASSIGNED = re.compile(
    r"(?i)(?<![A-Za-z0-9])((?:api[_-]?key|access[_-]?token|client[_-]?secret|password|passwd|authorization)"
    r"(?:[\"']?\s*(?:=|%3D)\s*[\"']?|[\"']?\s*:\s*[\"'](?:bearer )?))(?!\$\{|%24%7B|\[)[^\s&\"',;}\]]{4,}"
)
QUERY_KEY = re.compile(r"(?i)[?&](?:key|token|access_token|sig|signature)=(?!\$\{)[^&\s]+")

MASK = "[key]"


def is_key_name(name: str) -> bool:
    """Tell whether an option or a variable of this name holds a key."""
    return KEY_NAMES.fullmatch(name) is not None


def key_problem(text: str, *, name: str = "") -> str | None:
    """Say what kind of key a text holds, without showing it; None where it holds none.

    Under a `name` that is one of a key, only the name of a variable may stand.
    """
    if NAMED_KEY.fullmatch(text):
        return None
    head, colon, _ = name.partition(":")
    if is_key_name(head) and (text or colon):
        return f"{head} is written out here"
    if SHAPES.search(text):
        return "this looks like a key that is written out"
    if LOGIN.search(text):
        return "this address holds a login"
    if HEADER.search(text) or QUERY_KEY.search(text) or ASSIGNED.search(text):
        return "this holds a key that is written out"
    return None


def masked(text: str) -> str:
    """Blank what looks like a key or a login, wherever it stands in a text."""
    text = LOGIN.sub(MASK, SHAPES.sub(MASK, text))
    text = HEADER.sub(rf"\1\2{MASK}", text)
    text = QUERY_KEY.sub(lambda match: match[0].partition("=")[0] + "=" + MASK, text)
    return ASSIGNED.sub(rf"\1{MASK}", text)


def refuse_key(option: str, value: str) -> None:
    """Refuse a key that is written out, without repeating it: a SPEC stands in logs, manifests and reports."""
    problem = key_problem(option) or key_problem(value, name=option)
    if problem is not None:
        raise UsageError(
            f"a SPEC never holds a key: {problem}",
            expected="the name of an environment variable, such as api_key=${MY_KEY}",
            hint="Put the key into that variable, and write the SPEC in single quotes.",
        )
