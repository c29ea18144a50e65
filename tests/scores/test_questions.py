"""What is said of images, question by question: images of which nothing was said are counted."""

from culturekit.scores.faithfulness import QuestionInput, QuestionOptions, score_questions
from tests.recipes.linguistic.score_world import images, quality


def test_a_model_of_which_nothing_was_said_is_counted() -> None:
    pictures = images([(f"{model}-{n}", model, f"p{n}") for model in ("one", "two") for n in range(4)])
    said = quality({f"one-{n}": 0.5 for n in range(3)})
    answer = score_questions(QuestionInput(pictures, quality=said), options=QuestionOptions())
    assert answer.scores["model"].to_list() == ["one"]
    assert answer.left_out == {"images without quality by clip": 5}
