"""A scheme as a Label Studio template, and sheets as the tasks it imports."""

from collections.abc import Mapping, Sequence
from html import escape
from xml.etree import ElementTree

from culturekit.annotate.scheme import Criterion, Scheme
from culturekit.annotate.tasks import Part, Task

__all__ = ["fixed_options", "label_studio_tasks", "subject_of", "template"]


def subject_of(scheme: Scheme) -> str:
    """Name the tag that answers belong to: the first picture, or the text where there are none."""
    return "picture_1" if scheme.pictures else "subject"


def template(scheme: Scheme) -> str:
    """Write the labelling interface; whatever texts a scheme has, they are texts in it."""
    view = ElementTree.Element("View")
    add(view, "Header", value=scheme.title, size="3")
    guidelines = add(view, "Collapse")
    panel = add(guidelines, "Panel", value="How to answer")
    for number, paragraph in enumerate(scheme.guidelines, start=1):
        add(panel, "Text", name=f"guideline_{number}", value=paragraph)
    add(view, "Text", name="note", value="$note")
    row = add(view, "View", style="display:flex;flex-wrap:wrap;gap:1em")
    for place in range(1, len(scheme.pictures) + 1):
        side = add(row, "View")
        if len(scheme.pictures) > 1:
            add(side, "Header", value=f"Picture {place}", size="5")
        add(side, "Image", name=f"picture_{place}", value=f"$picture_{place}", zoom="true", maxWidth="512px")
    if not scheme.pictures:
        add(view, "Text", name="subject", value="$subject")
    add_fields(view, "all", scheme.shows, scheme)
    for criterion in scheme.criteria:
        add_question(view, criterion, scheme)
    ElementTree.indent(view)
    return ElementTree.tostring(view, encoding="unicode") + "\n"


def add(parent: ElementTree.Element, tag: str, **attributes: str) -> ElementTree.Element:
    """Put a tag into another."""
    return ElementTree.SubElement(parent, tag, {name: drawable(text) for name, text in attributes.items()})


def drawable(text: str) -> str:
    """Leave out the characters that XML cannot hold."""
    return "".join(
        c for c in text if c in "\t\n" or (ord(c) >= 32 and not 0xD800 <= ord(c) < 0xE000 and ord(c) < 0xFFFE)
    )


def add_fields(parent: ElementTree.Element, place: str, names: Sequence[str], scheme: Scheme) -> None:
    """Show fields of the item, each under its heading."""
    for name in names:
        add(parent, "Header", value=scheme.fields[name], size="5")
        add(parent, "Text", name=f"{name}_for_{place}", value=f"${name}")


def add_question(view: ElementTree.Element, criterion: Criterion, scheme: Scheme) -> None:
    """Write one question, hidden until it is to be asked."""
    inside = view
    for name, values in criterion.when.items():
        inside = add(inside, "View", visibleWhen="choice-selected", whenTagName=name, whenChoiceValue=",".join(values))
    inside = add(inside, "View", style="margin-top:1em")
    add_fields(inside, criterion.name, criterion.shows, scheme)
    add(inside, "Header", value=criterion.question, size="4")
    shared = {"name": criterion.name, "toName": subject_of(scheme)}
    must = {"required": "true", "requiredMessage": "Please answer: " + criterion.question} if criterion.required else {}
    if criterion.type == "text":
        add(inside, "TextArea", **shared, **must, rows="3", maxSubmissions="1", editable="true")
        return
    listed = {"value": f"${criterion.options_from}"} if criterion.options_from else {}
    how = "multiple" if criterion.several else "single"
    line = "true" if criterion.type == "scale" else "false"
    choices = add(inside, "Choices", **shared, **must, **listed, choice=how, showInline=line)
    for value, label in fixed_options(criterion, scheme):
        add(choices, "Choice", value=value, html=escape(label))
    if criterion.comment is not None:
        add_comment(inside, criterion, scheme)


def add_comment(inside: ElementTree.Element, criterion: Criterion, scheme: Scheme) -> None:
    """Write the comment of a question, hidden until an answer asks for it."""
    comment = criterion.comment
    if comment is None:
        return
    view = add(inside, "View", visibleWhen="choice-selected", whenTagName=criterion.name,
               whenChoiceValue=",".join(comment.when))  # fmt: skip
    add(view, "Header", value=comment.question, size="5")
    must = {"required": "true"} if comment.required else {}
    add(view, "TextArea", name=criterion.comment_name, toName=subject_of(scheme), rows="2", maxSubmissions="1",
        editable="true", **must)  # fmt: skip


def fixed_options(criterion: Criterion, scheme: Scheme) -> list[tuple[str, str]]:
    """List the answers that are the same for all items, with what people read."""
    if criterion.type == "scale":
        return [(value, scale_label(criterion, value)) for value in criterion.fixed_values]
    if criterion.type in {"picture", "pictures"}:
        places = [place for place, name in enumerate(scheme.pictures, start=1) if offered(name, criterion, scheme)]
        return [(str(place), f"Picture {place}") for place in places]
    return [(option.value, option.label or option.value) for option in criterion.options]


def offered(name: str, criterion: Criterion, scheme: Scheme) -> bool:
    """Tell whether a picture can be chosen: one of those whose places are drawn, if one is to be chosen."""
    return criterion.type == "pictures" or not scheme.drawn or name in scheme.drawn


def scale_label(criterion: Criterion, value: str) -> str:
    """Write a step of a scale; what its ends mean stands beside these."""
    if criterion.ends and value == criterion.fixed_values[0]:
        return f"{value} ({criterion.ends[0]})"
    if criterion.ends and value == criterion.fixed_values[-1]:
        return f"{value} ({criterion.ends[1]})"
    return value


def label_studio_tasks(parts: Sequence[Part], pictures_at: str) -> list[dict[str, object]]:
    """Write the tasks of some parts, each part in the order of its first slot."""
    return [{"data": addressed(part.tasks[place], pictures_at)} for part in parts for place in part.orders[0]]


def addressed(task: Task, pictures_at: str) -> Mapping[str, object]:
    """Give the data of a task with the addresses of its pictures."""
    pictures = {f"picture_{place}": pictures_at + file for place, file in enumerate(task.files, start=1)}
    return {**task.data, **pictures}
