(() => {
  "use strict";
  const form = document.getElementById("filters");
  const choices = { concept: document.getElementById("by-concept"), model: document.getElementById("by-model") };
  const shown = document.getElementById("shown");
  const apply = () => {
    for (const [key, select] of Object.entries(choices)) {
      const name = `data-${key}`;
      for (const element of document.querySelectorAll(`[${name}]`)) {
        element.hidden = select.value !== "" && element.getAttribute(name) !== select.value;
      }
    }
    const images = document.querySelectorAll(".shot").length;
    const visible = [...document.querySelectorAll(".shot")].filter((shot) => !shot.closest("[hidden]")).length;
    shown.textContent = visible === images ? "" : `${visible} of ${images} images shown`;
  };
  form.hidden = false;
  form.addEventListener("change", apply);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
