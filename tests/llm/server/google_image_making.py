"""Gemini where it makes images: parts with pictures in place of words, or a reason why there are none."""

import base64
from collections.abc import Callable
from typing import Any

from tests.llm.server.answers import Answer
from tests.llm.server.google_generate import generate_response, usage_of
from tests.llm.server.made_replies import Question
from tests.llm.server.pictures import CONTENT_TYPES, picture_bytes
from tests.llm.server.script import Script

_FINISH = {
    "content-filter": "IMAGE_SAFETY",
    "prohibited": "IMAGE_PROHIBITED_CONTENT",
    "recitation": "IMAGE_RECITATION",
    "length": "MAX_TOKENS",
}


def writes_generated(script: Script) -> Callable[[Question, Answer], dict[str, Any]]:
    """Write answers as this script has pictures, and those in words as they are."""

    def write(question: Question, answer: Answer) -> dict[str, Any]:
        if question.operation != "images":
            return generate_response(question, answer)
        reply: dict[str, Any] = {
            "usageMetadata": usage_of(answer),
            "modelVersion": question.model,
            "responseId": question.digest[:22],
        }
        if answer.ending == "prompt-blocked":
            return {**reply, "promptFeedback": {"blockReason": answer.detail}}
        if answer.ending == "no-candidates":
            return reply
        return {**reply, "candidates": [candidate(question, answer, script)]}

    return write


def candidate(question: Question, answer: Answer, script: Script) -> dict[str, Any]:
    """Write the one candidate there is."""
    told = script.pictures
    if answer.ending in _FINISH:
        return {"index": 0, "finishReason": _FINISH[answer.ending], "finishMessage": "Unable to show this image."}
    if answer.ending == "refusal":
        return {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": answer.text}]}}
    if told.form == "none":
        return {"index": 0, "finishReason": "NO_IMAGE"}
    kind = CONTENT_TYPES.get(told.form, "image/png")
    parts = [
        {"inlineData": {"mimeType": kind, "data": base64.b64encode(picture_bytes(question.digest, at, told)).decode()}}
        for at in range(1 + told.more)
    ]
    draft = {"thought": True, "inlineData": {"mimeType": kind, "data": base64.b64encode(b"a draft").decode()}}
    ratings = [{"category": "HARM_CATEGORY_HATE_SPEECH", "probability": "NEGLIGIBLE"}]
    content = {"role": "model", "parts": [draft, {"text": "Here it is."}, *parts]}
    return {"index": 0, "finishReason": "STOP", "content": content, "safetyRatings": ratings}
