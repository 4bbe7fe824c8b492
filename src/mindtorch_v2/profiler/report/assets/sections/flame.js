// The flame graph, the path to its zoomed node, and the call tree as a table.

import { Branches } from "./branches.js";
import { CallTree, hasPython } from "../model/calltree.js";
import { append, choice, el, emptyState, heading, legend, matcher, replace, searchBox, toggle } from "../widgets/dom.js";
import { bytes, count, percent, time } from "../widgets/format.js";
import { FAMILIES, theme } from "../widgets/palette.js";
import { Icicle } from "../charts/icicle.js";

export const flame = {
  id: "calls",
  title: "Calls",
  build(model, root, app) {
    root.append(
      heading(
        "Calls",
        "The call tree, merged over all calls of the same path. Click to zoom; the path back is above the graph.",
      ),
    );
    if (!model.size) return root.append(emptyState("No calls", "Nothing was recorded."));
    let metric = "time",
      python = true,
      query = "",
      tree = new CallTree(model, python);
    const crumbs = el("nav", { class: "crumbs", "aria-label": "Zoomed to" }),
      host = el("div", { class: "flame-host" }),
      found = el("p", { class: "note", role: "status" }),
      branches = new Branches();
    const icicle = new Icicle(host, (at) => {
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
    const restart = () => {
      icicle.show(tree, metric);
      look();
    };
    this.search = searchBox("Highlight by name", (text) => {
      query = text;
      look();
    });
    const metrics = [["time", "Time"], ...(model.hasMemory ? [["memory", "Bytes allocated"]] : [])];
    append(root, [
      el(
        "div",
        { class: "toolbar" },
        this.search,
        choice("Size by", metrics, metric, (value) => {
          metric = value;
          restart();
        }),
        hasPython(model) &&
          toggle("Python functions", python, (value) => {
            python = value;
            tree = new CallTree(model, python);
            restart();
          }),
      ),
      found,
      crumbs,
      host,
      legend(FAMILIES.map(([name], at) => [name, theme.families[at]]).filter((_, at) => tree.family.includes(at))),
      !model.hasMemory &&
        el("p", { class: "note", text: "Memory was not recorded: pass profile_memory=True to size the graph by bytes." }),
      branches.element,
    ]);
    restart();
    app.redraws.push(() => {
      icicle.drawing.soon();
      branches.show(tree, metric, icicle.focus);
    });
    this.icicle = icicle;
  },
};
