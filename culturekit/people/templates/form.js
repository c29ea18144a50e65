"use strict";
(() => {
  const content = JSON.parse(document.getElementById("content").textContent);
  for (const data of content.tasks)
    for (const [name, value] of Object.entries(data)) if (typeof value === "number") data[name] = content.lists[value];
  for (const question of content.questions) Object.assign(question, { levels: [], colours: {}, open: false, ...question });
  const at = (id) => document.getElementById(id);
  const asked = new URLSearchParams(location.search);
  const study = { prolific_pid: asked.get("PROLIFIC_PID"), study_id: asked.get("STUDY_ID"), session_id: asked.get("SESSION_ID") };
  let sheet = null, annotator = "", state = null, place = 0, shownAt = 0;

  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.append(...children);
    return element;
  };
  const texts = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": "\"", "&#x27;": "'" };
  const plain = (escaped) => escaped.replace(/&(?:amp|lt|gt|quot|#x27);/g, (mark) => texts[mark]);

  const key = () => `culturekit ${content.project} ${sheet.name} ${annotator}`;
  const keep = () => {
    try {
      localStorage.setItem(key(), JSON.stringify(state));
      at("kept").textContent = content.served ? "" : "Your answers are kept in this browser until you save them.";
    } catch {
      if (content.served) return;
      at("kept").textContent = "This browser keeps nothing: leave this page open until you have saved your answers.";
    }
  };
  const kept = () => {
    try {
      const found = JSON.parse(localStorage.getItem(key()));
      return found && typeof found.answers === "object" && found.answers ? found : null;
    } catch {
      return null;
    }
  };

  const task = () => content.tasks[sheet.tasks[place]];
  const given = () => state.answers[task().task] ??= {};
  const list = (value) => value === undefined ? [] : [].concat(value);
  const isAsked = (question, answers) =>
    Object.entries(question.when).every(([name, values]) => list(answers[name]).some((value) => values.includes(value)));
  const wantsComment = (question, answers) =>
    question.comment && list(answers[question.name]).some((value) => question.comment.when.includes(value));
  const optionsOf = (question, data) =>
    question.from ? (data[question.from] ?? []).map((option) => [option.value, plain(option.html)]) : question.options;

  /* What is no longer asked is forgotten: an answer to it would mean nothing. */
  const askedOnly = (answers) => {
    const left = {};
    for (const question of content.questions) {
      if (!isAsked(question, left)) continue;
      if (list(answers[question.name]).some((value) => value.trim())) left[question.name] = answers[question.name];
      const comment = question.comment && answers[question.comment.name];
      if (comment && comment.trim() && wantsComment(question, left)) left[question.comment.name] = comment;
    }
    return left;
  };
  const missing = (answers) => {
    const left = askedOnly(answers), found = [];
    for (const question of content.questions) {
      if (!isAsked(question, left)) continue;
      if (question.required && left[question.name] === undefined) found.push(question.name);
      if (wantsComment(question, left) && question.comment.required && left[question.comment.name] === undefined) found.push(question.comment.name);
    }
    return found;
  };

  const linked = (name, text) => name === "link" && /^https:\/\//.test(text) ? make("a", { href: text, target: "_blank", rel: "noreferrer noopener" }, text) : text;
  const shown = (name, data) => make("p", { class: "shown", dir: "auto" }, make("strong", {}, content.fields[name]), linked(name, data[name] ?? ""));

  /* What a page can tell of a screen that does not show colours as they are. */
  const screenNote = () => {
    const says = (query) => matchMedia(query).matches, hour = new Date().getHours();
    return ["Turn off night light and colour filters, and turn the brightness up: tones must look as they are.",
      ...(says("(forced-colors: active)") || says("(inverted-colors: inverted)") || says("(monochrome)") ? ["This system changes colours (high contrast, inverted or grey): please answer on another."] : []),
      ...(hour >= 19 || hour < 7 ? ["At this hour many screens turn warm or dim by themselves."] : [])].join(" ");
  };
  const optionBox = (question, value, label, answers) => {
    const input = make("input", { type: question.several ? "checkbox" : "radio", name: question.name, value });
    input.checked = list(answers[question.name]).includes(value);
    input.addEventListener("change", () => {
      if (question.several) {
        const alone = question.alone.includes(value);
        const others = list(answers[question.name]).filter((other) => other !== value && !alone && !question.alone.includes(other));
        answers[question.name] = input.checked ? [...others, value] : others;
        for (const box of at("questions").querySelectorAll("input"))
          if (box.name === question.name) box.checked = answers[question.name].includes(box.value);
      } else answers[question.name] = value;
      if (question.open)
        for (const [name, values] of Object.entries(question.when)) {
          answers[name] = values[0];
          for (const box of at("questions").querySelectorAll(`input[name="${name}"]`)) box.checked = box.value === values[0];
        }
      changed();
    });
    const text = make("span", { dir: "auto" }, label), colour = question.colours[value];
    if (colour) {
      text.prepend(make("i"));
      text.firstChild.style.backgroundColor = colour;
    }
    return make("label", { class: "option" }, input, text);
  };
  const textBox = (name, label, answers, extra) => {
    const box = make("textarea", { id: `text-${name}`, rows: "2", maxlength: "5000", dir: "auto", ...extra });
    box.value = answers[name] ?? "";
    box.addEventListener("input", () => { answers[name] = box.value; keep(); });
    return box;
  };
  const narrowing = (options) => {
    const box = make("input", { class: "filter", "aria-label": "Show only those that contain", placeholder: "Type to find one of many" });
    box.addEventListener("input", () => {
      const wanted = box.value.normalize("NFKD").toLowerCase();
      for (const option of options.children)
        option.hidden = !option.textContent.normalize("NFKD").toLowerCase().includes(wanted) && !option.firstChild.checked;
    });
    box.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
    return box;
  };

  const questionBox = (question, data, answers) => {
    const box = make("fieldset", { "data-question": question.name });
    const legend = make("legend", { dir: "auto" }, question.text);
    if (!question.required) legend.append(make("span", { class: "optional" }, " (may stay empty)"));
    box.append(legend, ...question.shows.map((name) => shown(name, data)));
    if (question.type === "text") box.append(textBox(question.name, question.text, answers, { "aria-label": question.text }));
    else {
      const found = optionsOf(question, data);
      const swatches = Object.keys(question.colours).length, levels = question.levels;
      const options = make("div", { class: swatches ? "swatches" : question.type === "scale" && !levels.length ? "scale" : found.length > 12 ? "options long" : "options" });
      options.append(...found.map(([value, label], step) => optionBox(question, value, levels.length ? `${value}: ${levels[step]}` : label, answers)));
      if (swatches) box.append(make("p", { class: "screen" }, screenNote()));
      if (found.length > 12 && question.type !== "scale") box.append(narrowing(options));
      box.append(options);
      if (question.ends.length) box.append(make("div", { class: "ends" }, make("span", {}, question.ends[0]), make("span", {}, question.ends[1])));
    }
    if (question.comment) {
      const label = make("label", { class: "comment", "data-comment": question.name, dir: "auto" }, question.comment.text);
      if (!question.comment.required) label.append(make("span", { class: "optional" }, " (may stay empty)"));
      label.append(textBox(question.comment.name, question.comment.text, answers, {}));
      box.append(label);
    }
    return box;
  };

  const changed = () => {
    const left = askedOnly(given());
    for (const question of content.questions) {
      const box = at("questions").querySelector(`[data-question="${question.name}"]`);
      box.hidden = !isAsked(question, left) && !question.open;
      if (question.open && !isAsked(question, left)) {
        delete given()[question.name];
        for (const input of box.querySelectorAll("input:checked")) input.checked = false;
      }
      const comment = box.querySelector("[data-comment]");
      if (comment) comment.hidden = !wantsComment(question, left);
    }
    at("problem").textContent = "";
    keep();
  };

  const show = (where) => {
    place = where;
    const data = task(), answers = given();
    at("heading").textContent = `${place + 1} of ${sheet.tasks.length}`;
    at("progress").max = sheet.tasks.length;
    at("progress").value = sheet.tasks.filter((number) => !missing(state.answers[content.tasks[number].task] ?? {}).length).length;
    at("note").textContent = data.note;
    at("note").hidden = !data.note;
    at("pictures").className = content.pictures > 1 ? "several" : "";
    at("pictures").replaceChildren(...Array.from({ length: content.pictures }, (_, number) => {
      const image = make("img", { src: `pictures/${data[`picture_${number + 1}`]}`, alt: `Picture ${number + 1} of this item` });
      const figure = make("figure", {}, ...(content.pictures > 1 ? [make("figcaption", {}, `Picture ${number + 1}`)] : []), image);
      image.addEventListener("click", () => figure.classList.toggle("large"));
      return figure;
    }));
    at("pictures").hidden = !content.pictures;
    at("questions").replaceChildren(
      ...content.shows.map((name) => shown(name, data)),
      ...content.questions.map((question) => questionBox(question, data, answers)));
    for (const { name, when } of content.questions.filter((question) => question.open))
      for (const asked of Object.keys(when))
        at("questions").querySelector(`[data-question="${asked}"]`).before(at("questions").querySelector(`[data-question="${name}"]`));
    at("about").textContent = sheet.about ? `This sheet: ${sheet.about}.` : "";
    at("back").disabled = place === 0;
    at("next").textContent = place + 1 === sheet.tasks.length ? "Finish" : "Next";
    changed();
    shownAt = Date.now();
    scrollTo(0, 0);
    at("heading").focus();
  };

  /* Longer looks away than five minutes are not counted as work. */
  const leave = () => {
    const name = task().task;
    state.seconds[name] = (state.seconds[name] ?? 0) + Math.min(Date.now() - shownAt, 300000) / 1000;
    shownAt = Date.now();
    if (!missing(given()).length) state.finished[name] ??= new Date().toISOString();
    keep();
  };

  const section = (name) => {
    document.body.dataset.section = name;
    for (const other of ["start", "work", "end"]) at(other).hidden = other !== name;
  };
  const refuse = (names) => {
    const first = names[0];
    at("problem").textContent = names.length > 1 ? `${names.length} answers are still missing.` : "One answer is still missing.";
    (at(`text-${first}`) ?? at("questions").querySelector(`[data-question="${first}"] input:not(.filter)`)).focus();
  };

  const answersOf = (data) => {
    const answers = askedOnly(state.answers[data.task] ?? {}), result = [];
    const put = (name, type, value) =>
      result.push({ id: `${data.task}.${name}`, from_name: name, to_name: content.to, type, origin: "manual", value });
    for (const question of content.questions) {
      const answer = answers[question.name];
      if (answer !== undefined)
        question.type === "text" ? put(question.name, "textarea", { text: [answer.trim()] }) : put(question.name, "choices", { choices: list(answer) });
      const comment = question.comment && answers[question.comment.name];
      if (comment) put(question.comment.name, "textarea", { text: [comment.trim()] });
    }
    return result;
  };
  const entryOf = (number, order) => {
    const data = content.tasks[number], when = state.finished[data.task] ?? new Date().toISOString();
    return {
      id: order + 1,
      annotations: [{
        id: order + 1,
        completed_by: { id: 0, email: annotator, first_name: "", last_name: "" },
        result: answersOf(data),
        was_cancelled: false,
        ground_truth: false,
        created_at: when,
        updated_at: when,
        lead_time: Math.round((state.seconds[data.task] ?? 0) * 1000) / 1000,
      }],
      data,
      meta: { sheet: sheet.name, ...(study.prolific_pid ? study : {}) },
      created_at: when,
      updated_at: when,
      inner_id: order + 1,
      total_annotations: 1,
      cancelled_annotations: 0,
      total_predictions: 0,
    };
  };
  const exported = () => sheet.tasks.map(entryOf);

  /* Served: the server hands out the sheets, and nobody goes on before it has saved an answer. */
  let waiting = false;
  const tell = async (name, body) => {
    const reply = await fetch(name, { method: "POST", body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(await reply.text());
    const said = await reply.json();
    at("together").textContent = said.together;
    at("size").textContent = said.size ?? at("size").textContent;
    return said;
  };
  const alone = async (problem, work) => {
    if (waiting) return;
    waiting = true;
    at(problem).textContent = "";
    try {
      await work();
    } catch (error) {
      at(problem).textContent = error instanceof TypeError ? "The server does not answer, and this answer is not saved. Once it runs again, open the address that it prints: all others are there." : error.message;
    } finally {
      waiting = false;
    }
  };
  const saved = async () => {
    if (content.served && !missing(given()).length) await tell("answer", entryOf(sheet.tasks[place], place));
  };
  const answersIn = (result) => Object.fromEntries(result.map(({ from_name: name, value }) => {
    const question = content.questions.find((one) => one.name === name);
    return [name, value.text ? value.text[0] : question.several ? value.choices : value.choices[0]];
  }));
  const handOut = async (name) => {
    const said = await tell("begin", { annotator: name });
    annotator = said.annotator;
    sheet = content.sheets.find((one) => one.name === said.sheet);
    if (!sheet) return finish(said.failed);
    sheet = { ...sheet, tasks: sheet.tasks.filter((number) => !said.settled.includes(content.tasks[number].task)) };
    const before = kept();
    state = { answers: { ...before?.answers }, seconds: { ...before?.seconds }, finished: { ...before?.finished } };
    for (const [task, annotation] of Object.entries(said.answered)) {
      state.answers[task] = answersIn(annotation.result);
      state.seconds[task] = annotation.lead_time;
      state.finished[task] = annotation.created_at;
    }
    goOn();
  };
  const goOn = () => {
    section("work");
    const open = sheet.tasks.findIndex((number) => missing(state.answers[content.tasks[number].task] ?? {}).length);
    show(open < 0 ? sheet.tasks.length - 1 : open);
  };

  const finish = (failed) => {
    section("end");
    if (!content.served) at("text").value = JSON.stringify(exported());
    else if (!sheet) {
      at("end-note").textContent = failed || "All that you can answer is answered and saved. Thank you; you can close this page.";
      at("review").hidden = at("more").hidden = true;
    }
    at("end-heading").focus();
  };
  const save = () => {
    const address = URL.createObjectURL(new Blob([JSON.stringify(exported(), null, 1)], { type: "application/json" }));
    const name = `answers-${content.scheme}-${sheet.name}-${annotator}`.replace(/[^A-Za-z0-9-]+/g, "_");
    make("a", { href: address, download: `${name}.json` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60000);
    at("saved").textContent = "Saved. Send the file, and you are done. Thank you.";
    if (content.completion) {
      at("completion").firstChild.href = content.completion;
      at("completion").hidden = false;
    }
  };
  at("review").addEventListener("click", () => { section("work"); show(sheet.tasks.length - 1); });
  at("back").addEventListener("click", () => alone("problem", async () => { leave(); await saved(); show(place - 1); }));
  at("questions").addEventListener("submit", (event) => {
    event.preventDefault();
    alone("problem", async () => {
      const names = missing(given());
      if (names.length) return refuse(names);
      leave();
      await saved();
      if (place + 1 < sheet.tasks.length) return show(place + 1);
      const open = sheet.tasks.findIndex((number) => missing(state.answers[content.tasks[number].task] ?? {}).length);
      return open < 0 ? finish() : show(open);
    });
  });
  at("begin").addEventListener("submit", (event) => {
    event.preventDefault();
    annotator = at("annotator").value.trim();
    if (content.served && annotator) return alone("start-problem", () => handOut(annotator));
    sheet = content.served ? null : content.sheets.find((one) => one.name === at("sheet").value);
    if (!annotator || !sheet) {
      at("start-problem").textContent = annotator ? "Please choose your sheet." : "Please say who you are.";
      return (annotator ? at("sheet") : at("annotator")).focus();
    }
    const before = kept();
    state = { answers: before?.answers ?? {}, seconds: before?.seconds ?? {}, finished: before?.finished ?? {} };
    goOn();
  });

  if (study.prolific_pid) at("annotator").value = study.prolific_pid;
  if (content.served) return at("more").addEventListener("click", () => alone("end-problem", () => handOut(annotator)));
  at("save").addEventListener("click", save);
  at("sheet").append(make("option", { value: "" }, "Choose the one you were given"),
    ...content.sheets.map((one) => make("option", { value: one.name }, `${one.name} (${one.tasks.length} items)`)));
  if (asked.get("sheet")) at("sheet").value = asked.get("sheet");
  if (content.sheets.length === 1) at("sheet").value = content.sheets[0].name;
})();
