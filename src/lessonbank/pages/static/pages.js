// Single keys, and one press for one decision. Every page works without this file.
"use strict";
(() => {
  const off = "lessonbank-keys-off";
  const isOff = () => localStorage.getItem(off) === "yes";
  const typing = (target) => target.closest("input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]");

  const rows = () => [...document.querySelectorAll("[data-row]")];
  const walk = (way) => {
    const all = rows();
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (way > 0 ? 0 : all.length - 1) : at + way];
    if (next) next.focus();
    return Boolean(next);
  };
  const press = (key) => {
    const found = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!found) return (key === "j" && walk(1)) || (key === "k" && walk(-1));
    if (found.matches("input[type=search]")) found.focus();
    else found.click();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && typing(event.target)) return event.target.blur();
    if (isOff() || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.key.length !== 1 || typing(event.target)) return;
    if (sent || press(event.key)) event.preventDefault();
  });

  // On a slow network a second decision would be made unseen, on what the first was about. A download leaves the page as it is.
  let sent = false;
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post" || event.target.matches("[data-stays]")) return;
    if (sent) event.preventDefault();
    sent = true;
  });
  // A page that comes back from the browser's memory may be sent again.
  window.addEventListener("pageshow", () => { sent = false; });

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-go]")) event.target.form.requestSubmit();
  });

  const toggle = document.querySelector("[data-keys]");
  const say = () => { toggle.textContent = isOff() ? "Switch single keys on" : "Switch single keys off"; toggle.setAttribute("aria-pressed", String(!isOff())); document.documentElement.classList.toggle("keys-off", isOff()); };
  if (toggle) {
    toggle.hidden = false;
    toggle.addEventListener("click", () => { localStorage.setItem(off, isOff() ? "no" : "yes"); say(); });
    say();
  }
  const first = document.querySelector("[data-focus]");
  if (first) {
    first.focus({ preventScroll: true });
    first.scrollIntoView({ block: "nearest" });
  }
})();
