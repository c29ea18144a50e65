(() => {
  "use strict";
  const form = document.getElementById("filters");
  const choices = { concept: document.getElementById("by-concept"), model: document.getElementById("by-model") };
  const shown = document.getElementById("shown");
  const filtered = [...document.querySelectorAll("[data-concept], [data-model]")];
  const shots = [...document.querySelectorAll(".shot")];
  const apply = () => {
    const wanted = Object.entries(choices).filter(([, select]) => select.value !== "");
    for (const element of filtered) {
      const hidden = wanted.some(([key, select]) => key in element.dataset && element.dataset[key] !== select.value);
      if (element.hidden !== hidden) element.hidden = hidden;
    }
    const visible = shots.filter((shot) => !shot.closest("[hidden]")).length;
    shown.textContent = visible === shots.length ? "" : `${visible} of ${shots.length} images shown`;
  };
  form.hidden = false;
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
