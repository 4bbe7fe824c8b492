// The flame graph, the path to its zoomed node, and the call tree as a table.

import { Branches } from "./branches.js";
import { CallTree, hasPython } from "../model/calltree.js";
import { append, choice, el, emptyState, heading, legend, matcher, replace, searchBox, toggle } from "../widgets/dom.js";
import { bytes, count, percent, time } from "../widgets/format.js";
import { FAMILIES, theme } from "../widgets/palette.js";
import { Icicle } from "../charts/icicle.js";

const TREE_VIEWS = [
  ["callees", "What was called"],
  ["callers", "From the inside: callers"],
];

export const flame = {
  id: "calls",
  title: "Calls",
  build(model, root, app) {
    root.append(
      heading(
        "Calls",
        "The call tree, merged over all calls of the same path, the largest first. Click to zoom; the path back is above the graph.",
      ),
    );
    if (!model.size) return root.append(emptyState("No calls", "Nothing was recorded."));
    const chosen = app.choicesOf(this);
    let metric = chosen.get("size") === "memory" && model.hasMemory ? "memory" : "time",
      python = chosen.get("python") !== "no",
      query = chosen.get("q") || "",
      view = TREE_VIEWS.some(([key]) => key === chosen.get("view")) ? chosen.get("view") : "callees",
      whole = new CallTree(model, python),
      around = model.labels.indexOf(chosen.get("around") || ""),
      tree = whole;
    const crumbs = el("nav", { class: "crumbs", "aria-label": "Zoomed to" }),
      host = el("div", { class: "flame-host" }),
      found = el("p", { class: "note", role: "status" }),
      branches = new Branches();
    const above = el("div", { class: "flame-host callers" }),
      aboveTitle = el("h3", { class: "mono" });
    let callers = null; // made when it is first asked for
    const aroundButton = el("button", { type: "button", onclick: () => showAround(around >= 0 ? -1 : tree.label[icicle.focus]) });
    const icicle = new Icicle(host, (at) => {
      aroundButton.hidden = around < 0 && at === 0;
      aroundButton.textContent = around >= 0 ? "Show all calls" : `Callers and callees of ${tree.shortName(at)}`;
      keep();
      replace(
        crumbs,
        [0, ...tree.path(at)].map((one) =>
          el(
            "button",
            {
              type: "button",
              class: "link mono",
              "aria-current": one === at ? "location" : undefined,
              onclick: () => icicle.zoom(one),
            },
            tree.name(one),
          ),
        ),
      );
      branches.show(tree, metric, at);
    });
    const look = () => {
      const test = matcher(query),
        result = icicle.search(test),
        format = metric === "memory" ? bytes : time;
      found.textContent = result
        ? `${count(result.found)} places match, ${format(result.sum)} in all (${percent(result.sum, icicle.values[0])})`
        : "";
    };
    const keep = () =>
      app.keep(this, {
        view: view === "callees" ? "" : view,
        size: metric === "time" ? "" : metric,
        python: python ? "" : "no",
        q: query,
        around: around >= 0 ? model.labels[around] : "",
        at: around < 0 && icicle.tree === tree ? tree.path(icicle.focus).map((one) => tree.label[one]).join(".") : "",
      });
    const restart = () => {
      if (!whole.label.includes(around)) around = -1;
      tree = around >= 0 ? whole.below(around) : view === "callers" ? (whole.fromInside ??= whole.inverted()) : whole;
      above.hidden = aboveTitle.hidden = around < 0;
      if (around >= 0) {
        aboveTitle.textContent = `Callers of ${model.labels[around]}, the innermost first`;
        callers ??= new Icicle(above, () => {});
        callers.drawing.canvas.setAttribute("aria-label", "Callers: arrow keys move, Enter zooms, Escape zooms out");
        callers.show(whole.inverted(around), metric);
      }
      icicle.show(tree, metric);
      look();
    };
    const showAround = (label) => {
      around = label;
      restart();
    };
    this.search = searchBox("Highlight by name", (text) => {
      query = text;
      look();
      keep();
    });
    this.search.value = query;
    const metrics = [["time", "Time"], ...(model.hasMemory ? [["memory", "Bytes allocated"]] : [])];
    append(root, [
      el(
        "div",
        { class: "toolbar" },
        this.search,
        choice("View", TREE_VIEWS, view, (value) => {
          view = value;
          around = -1;
          restart();
        }),
        choice("Size by", metrics, metric, (value) => {
          metric = value;
          restart();
        }),
        hasPython(model) &&
          toggle("Python functions", python, (value) => {
            python = value;
            whole = new CallTree(model, python);
            restart();
          }),
        aroundButton,
      ),
      found,
      crumbs,
      host,
      aboveTitle,
      above,
      legend(FAMILIES.map(([name], at) => [name, theme.families[at]]).filter((_, at) => tree.family.includes(at))),
      !model.hasMemory &&
        el("p", { class: "note", text: "Memory was not recorded: pass profile_memory=True to size the graph by bytes." }),
      branches.element,
    ]);
    const way = (chosen.get("at") || "").split(".").filter(Boolean).map(Number);
    restart();
    // Down the path that the address names, as far as there is one.
    let at = 0;
    for (const label of way) at = tree.children[at].find((child) => tree.label[child] === label) ?? at;
    if (at) icicle.zoom(at);
    app.redraws.push(() => {
      icicle.drawing.soon();
      callers?.drawing.soon();
      branches.show(tree, metric, icicle.focus);
    });
    this.icicle = icicle;
  },
};
