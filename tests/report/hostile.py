"""Three hundred texts that would do something if a page let them: markup, scripts, styles, directions, templates."""

import itertools
from collections.abc import Iterator

RUN = "window.pwned=1;document.title='pwned'"
ELSEWHERE = "http://127.0.0.1:9/x"

ELEMENTS = (
    f"<script>{RUN}</script>", f"<script src={ELSEWHERE}.js></script>", f'<img src=x onerror="{RUN}">',
    f"<img src={ELSEWHERE}.png>", f"<svg onload={RUN.split(';', maxsplit=1)[0]}>", f"<svg><script>{RUN}</script></svg>",
    f"<svg><animate onbegin={RUN.split(';', maxsplit=1)[0]} attributeName=x dur=1s>",
    f"<details open ontoggle={RUN.split(';', maxsplit=1)[0]}>x</details>",
    f"<iframe srcdoc='<script>parent.{RUN.split(';', maxsplit=1)[0]}</script>'></iframe>",
    f"<iframe src={ELSEWHERE}></iframe>", f"<object data={ELSEWHERE}></object>", f"<embed src={ELSEWHERE}>",
    f"<link rel=stylesheet href={ELSEWHERE}.css>", f"<base href={ELSEWHERE}/>",
    f"<meta http-equiv=refresh content='0;url={ELSEWHERE}'>", f"<style>@import '{ELSEWHERE}.css';</style>",
    "<style>*{display:none!important}</style>",
    f"<form action={ELSEWHERE}><input name=a autofocus onfocus={RUN.split(';', maxsplit=1)[0]}></form>",
    f"<video src={ELSEWHERE}.mp4 autoplay>", f"<body onload={RUN.split(';', maxsplit=1)[0]}>",
    f"<template><script>{RUN}</script></template>",
    f"<math><mtext><table><mglyph><style><img src=x onerror={RUN.split(';', maxsplit=1)[0]}>",
)  # fmt: skip

LEAVING = (
    "{}", '">{}', "'>{}", "</title>{}", "</style>{}", "</script>{}", "</textarea>{}", "-->{}", "]]>{}", "</svg>{}",
)  # fmt: skip

ATTRIBUTES = tuple(
    f"{quote}{space}{event}={quote}{RUN}{quote}{space}x={quote}"
    for quote, space, event in itertools.product(
        ('"', "'", ""), (" ", "/", "\n"), ("onmouseover", "onfocus", "onclick", "style", "href", "src")
    )
)

ADDRESSES = tuple(
    f"{scheme}{RUN}"
    for scheme in (
        "javascript:", "JaVaScRiPt:", " javascript:", "java\tscript:", "javascript&colon;", "vbscript:",
        "data:text/html,<script>", "data:image/svg+xml,<svg onload=",
    )
)  # fmt: skip

TEMPLATES = (
    "{{7*7}}", "{{ 7 * 7 }}{% raw %}", "{% include 'report.css' %}", "{# gone #}", "{{ data.models }}", "${7*7}",
    "<%= 7*7 %>", "#{7*7}", "{{''.__class__.__mro__}}", "{{ config }}", "@{7*7}", "[[7*7]]", "%(model)s", "{model}",
    "%n%s%x",
)  # fmt: skip

FORMULAS = ("=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(1)", "\t=1", '=HYPERLINK("http://127.0.0.1:9/")')

STYLES = (
    "expression(alert(1))", f"background:url({ELSEWHERE})", "position:fixed;inset:0", "}*{display:none}", "/**/",
    "</style", "\\3c script\\3e", "--ground:red",
)  # fmt: skip

DIRECTIONS = (
    "\u202egnp.exe", "\u2066a\u2067b", "\u202dleft", "\u200f\u200e", "\u061cx", "مرحبا (a) 12", "שלום (b) 34",
    "a\u202e" * 50,
)  # fmt: skip

LETTERS = (
    "\0", "a\0b", "\x1b[31mred", "\x07", "\x7f", "\x85", "\ufeff", "\ufffe", "\U000e0001", "e" + "\u0301" * 200,
    "Z" * 5000, "日本語のラベル", "한국어", "ไทย", "हिन्दी", "🏳️‍🌈" * 30, "\u2028line", "\u2029", "\u200b" * 40, "ﷺ" * 30,
    "𝕏" * 40, "&lt;b&gt;", "&#60;script&#62;", "&NewLine;", "&" * 100, "<" * 100, ">" * 100, '"' * 100, "'" * 100,
    "`" * 100, "\\" * 100, "\r\n\r\n", "a" * 1_000_000, "<b>" * 350_000, " " * 1000, "",
)  # fmt: skip


def hostile_texts() -> list[str]:
    """Give the texts, each once."""
    return list(dict.fromkeys(every()))


def every() -> Iterator[str]:
    yield from (leave.format(element) for element, leave in itertools.product(ELEMENTS, LEAVING))
    yield from (*ATTRIBUTES, *ADDRESSES, *TEMPLATES, *FORMULAS, *STYLES, *DIRECTIONS, *LETTERS)
