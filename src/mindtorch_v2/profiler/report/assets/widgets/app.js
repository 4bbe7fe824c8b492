// What every page has: sections and the way between them, theme, keys, printing.

import { readColumns } from "../model/decode.js";
import { el, emptyState, hideTip, replace } from "./dom.js";
import { readTheme, repaintElements, theme } from "./palette.js";

export class Page {
  constructor(model, sections, keys) {
    this.model = model;
    this.keys = keys;
    this.redraws = [];
    this.sections = sections.filter((section) => !section.available || section.available(model));
    this.built = new Map();
    this.choices = new Map();
    addEventListener("beforeprint", () => this.print(true));
    addEventListener("afterprint", () => this.print(false));
    const nav = document.getElementById("nav");
    this.links = this.sections.map((section) =>
      el("a", { href: `#${section.id}`, text: section.title, "data-section": section.id }),
    );
    nav.append(...this.links);
    addEventListener("hashchange", () => this.route());
    addEventListener("keydown", (event) => this.key(event));
    document.getElementById("theme").addEventListener("click", () => this.flipTheme());
    document.getElementById("help").addEventListener("click", () => this.help());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.retheme());
    // Heads of tables stay below the page's own.
    const top = document.querySelector(".top");
    new ResizeObserver(() => document.documentElement.style.setProperty("--top", `${top.offsetHeight}px`)).observe(top);
    this.route();
  }

  // The fragment is a section and its choices: #calls?view=callers&q=mm.
  route() {
    const [wanted, choices] = location.hash.slice(1).split("?");
    if (wanted === "main") return document.getElementById("main").focus();
    const section = this.sections.find((one) => one.id === wanted) || this.sections[0];
    if (choices !== undefined) this.choices.set(section.id, new URLSearchParams(choices));
    const built = this.built.has(section);
    this.open(section);
    if (built && choices !== undefined) section.restore?.(this.choicesOf(section));
  }

  choicesOf(section) {
    if (!this.choices.has(section.id)) this.choices.set(section.id, new URLSearchParams());
    return this.choices.get(section.id);
  }

  // Keeps a choice in the page's address, so that a link to it shows the same; an empty value is the default and left out.
  keep(section, values) {
    const choices = this.choicesOf(section);
    for (const [key, value] of Object.entries(values)) {
      if (value === "" || value === null || value === undefined || value === false) choices.delete(key);
      else choices.set(key, value === true ? "yes" : value);
    }
    if (this.current === section) history.replaceState(null, "", this.address(section));
  }

  address(section) {
    const choices = this.choicesOf(section).toString();
    return `#${section.id}${choices ? `?${choices}` : ""}`;
  }

  // Everything on paper: all sections, whole tables, canvases as wide as the page.
  print(begins) {
    if (begins) {
      this.beforePrint = this.current;
      for (const section of this.sections) this.open(section);
      for (const [section, root] of this.built) {
        root.hidden = false;
        section.table?.showAll();
      }
      this.redraws.forEach((redraw) => redraw());
    } else this.open(this.beforePrint);
  }

  open(section) {
    hideTip();
    this.current = section;
    const main = document.getElementById("main");
    for (const [one, root] of this.built) root.hidden = one !== section;
    for (const link of this.links) {
      if (link.dataset.section === section.id) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "center" });
      } else link.removeAttribute("aria-current");
    }
    if (this.built.has(section)) return;
    const root = el("section", { id: `section-${section.id}`, "aria-label": section.title });
    this.built.set(section, root);
    main.append(root);
    section.build(this.model, root, this);
  }

  go(section) {
    if (this.current !== section) history.pushState(null, "", this.address(section));
    this.open(section);
  }

  flipTheme() {
    const next = theme.dark ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    try {
      localStorage.setItem("mindtorch-report-theme", next);
    } catch {
      /* a page from disk may have no storage: the choice then lasts as long as the page */
    }
    this.retheme();
  }

  retheme() {
    readTheme();
    repaintElements();
    nameTheme();
    this.redraws.forEach((redraw) => redraw());
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea, dialog")) return;
    const number = Number(event.key);
    if (number >= 1 && number <= this.sections.length) this.go(this.sections[number - 1]);
    else if (event.key === "/" && this.current.search) this.current.search.focus();
    else if (event.key.toLowerCase() === "t") this.flipTheme();
    else if (event.key === "?") this.help();
    else return;
    event.preventDefault();
  }

  help() {
    const dialog = el(
      "dialog",
      {
        "aria-label": "Keyboard and mouse",
        onclose: () => dialog.remove(),
        onclick: (event) => {
          if (event.target === dialog) dialog.close();
        },
      },
      el("h2", { text: "Keyboard and mouse" }),
      el(
        "dl",
        { class: "facts" },
        this.keys.map(([key, text]) => [el("dt", {}, el("kbd", { text: key })), el("dd", { text })]),
      ),
      el("p", { class: "actions" }, el("button", { type: "button", onclick: () => dialog.close() }, "Close")),
    );
    document.body.append(dialog);
    dialog.showModal();
  }
}

function nameTheme() {
  const button = document.getElementById("theme");
  button.textContent = theme.dark ? "☀" : "☾";
  button.setAttribute("aria-label", theme.dark ? "Switch to light" : "Switch to dark");
}

// Shows a page: open(about, columns) makes it and returns its subtitle.
export async function openPage(open) {
  const status = document.getElementById("status");
  try {
    const saved = localStorage.getItem("mindtorch-report-theme");
    if (saved) document.documentElement.dataset.theme = saved;
  } catch {
    /* no storage: the system's theme it is */
  }
  readTheme();
  nameTheme();
  try {
    const subtitle = open(JSON.parse(document.getElementById("about").textContent), await readColumns());
    document.getElementById("subtitle").textContent = subtitle;
    status.hidden = true;
    // Milliseconds until the first section was drawn.
    requestAnimationFrame(() => {
      document.documentElement.dataset.ready = Math.round(performance.now());
    });
  } catch (error) {
    replace(status, emptyState("This report cannot be shown", error.message));
    status.classList.add("problem");
    throw error;
  }
}
