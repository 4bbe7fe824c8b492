// The program's code with time, memory and calls beside each line.

import { append, choice, el, emptyState, heading, meter, replace, searchBox, toggle } from "../widgets/dom.js";
import { bytes, count, percent, plural, time } from "../widgets/format.js";
import { rowKeys, tableBox } from "../widgets/tables.js";

const AROUND = 3; // lines shown before and after one with figures
const WORDS =
  "and as assert async await break class continue def del elif else except finally for from global if import in is lambda " +
  "nonlocal not or pass raise return try while with yield None True False";
const KEYWORDS = new Set(WORDS.split(" "));
const TOKEN = /(#.*$)|("""|'''|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|([A-Za-z_]\w*)/g;

// A line of Python as nodes: comments, texts and keywords in classes of their own.
export function coloredCode(text) {
  const found = [];
  let done = 0;
  for (const match of text.matchAll(TOKEN)) {
    const [whole, comment, string, word] = match,
      kind = comment ? "comment" : string ? "string" : KEYWORDS.has(word) ? "keyword" : "";
    if (!kind) continue;
    found.push(text.slice(done, match.index), el("span", { class: `code-${kind}`, text: whole }));
    done = match.index + whole.length;
  }
  return [...found, text.slice(done)];
}

// Figures by line number, as objects.
function linesOf(table, file) {
  return new Map(file.lines.map((values) => [values[0], Object.fromEntries(values.map((value, at) => [table.fields[at], value]))]));
}

function lineDetails(line, app) {
  const most = line.ops.length ? line.ops[0][1] : 1;
  return el(
    "div",
    { class: "group-details" },
    line.ops.length > 0 &&
      el(
        "div",
        {},
        el("h4", { text: "Its ops by self time" }),
        el(
          "ul",
          { class: "bars line-ops" },
          line.ops.map(([name, spent]) =>
            el(
              "li",
              {},
              el(
                "span",
                { class: "bar-name" },
                el("button", { type: "button", class: "link mono", onclick: () => app.showOperator(name) }, name),
              ),
              meter(spent / most),
              el("span", { class: "bar-value", text: time(spent) }),
              el("span", { class: "bar-share", text: percent(spent, line.self_ns) }),
            ),
          ),
        ),
      ),
    el(
      "div",
      {},
      el("h4", { text: `Line ${line.number}` }),
      el("p", {
        class: "note",
        text: `On the stack for ${time(line.total_ns)}; ${time(line.self_ns)} of that as the innermost line of the program.`,
      }),
      line.python_ns > 0 &&
        el("p", {
          class: "note",
          text:
            `${time(line.python_ns)} in Python itself, between calls` +
            (line.python_to > line.number ? `: some of it may be of the lines up to ${line.python_to}.` : "."),
        }),
      line.backward_ns > 0 &&
        el("p", { class: "note", text: `${time(line.backward_ns)} more in the backward nodes of its ops, which ran elsewhere.` }),
    ),
  );
}

export const source = {
  id: "source",
  title: "Source",
  available: (model) => model.size > 0,
  build(model, root, app) {
    const table = model.source;
    root.append(
      heading(
        "Source",
        "Your own code. An event counts for the innermost line of yours that was on the stack, whatever library is in between.",
      ),
    );
    if (!table || !table.files.length)
      return root.append(
        emptyState("No lines were recorded", "Pass with_stack=True to profile() to see time, memory and calls line by line."),
      );
    const whole = table.files.reduce((sum, file) => sum + file.self, 0),
      summary = el("p", { class: "note", role: "status" }),
      problem = el("p", { class: "note warning" }),
      body = el("tbody"),
      hot = el("ol", { class: "bars hot-lines" });
    const chosen = app.choicesOf(this);
    let file = table.files.find((one) => one.name === chosen.get("file")) || table.files[0],
      lines = linesOf(table, file),
      everything = false,
      wanted = "";
    const hasMemory = table.files.some((one) => linesOf(table, one).values().some((line) => line.bytes));
    const columns = [
      ["total_ns", "Total", time, "While the line was on the stack"],
      ["self_ns", "Self", time, "While it was the innermost line of your code"],
      ["python_ns", "Python", time, "The part of Self in Python itself, placed by the calls around it"],
      ["backward_ns", "Backward", time, "Backward nodes of the line's ops, which ran elsewhere"],
      hasMemory && ["bytes", "Memory", bytes, "Bytes allocated"],
      ["calls", "Calls", count, "Calls that the line made itself"],
    ].filter(Boolean);
    const flip = (row) => {
      const open = row.getAttribute("aria-expanded") === "true";
      row.setAttribute("aria-expanded", String(!open));
      if (open) return row.nextElementSibling.remove();
      const line = lines.get(Number(row.dataset.line));
      row.after(el("tr", { class: "detail-row" }, el("td", { colspan: columns.length + 3 }, lineDetails(line, app))));
    };
    const codeRow = (number, most) => {
      const line = lines.get(number),
        text = file.text[number - 1] ?? "";
      const row = el(
        "tr",
        line
          ? { class: "opens", tabindex: "-1", "aria-level": 1, "aria-expanded": "false", "data-line": number, onclick: (event) => !event.target.closest("button") && flip(row) }
          : { class: "bare", "data-line": number },
        columns.map(([key, , format]) =>
          el("td", {
            class: "number",
            "data-key": key,
            "data-value": line ? line[key] : undefined,
            text: line && line[key] ? format(line[key]) : "",
          }),
        ),
        el("td", { class: "heat" }, line && meter(line.self_ns / most)),
        el("td", { class: "number line-number", text: number }),
        el(text.trim() ? "th" : "td", { scope: text.trim() ? "row" : undefined, class: "code" }, coloredCode(text)),
      );
      return row;
    };
    const gap = () => el("tr", { class: "bare gap" }, el("td", { colspan: columns.length + 3, text: "⋯" }));
    const render = () => {
      const most = Math.max(1, ...[...lines.values()].map((line) => line.self_ns)),
        last = Math.max(file.text.length, ...lines.keys()),
        near = new Set();
      for (const number of lines.keys()) for (let by = -AROUND; by <= AROUND; by++) near.add(number + by);
      const test = wanted.toLowerCase(),
        rows = [];
      let skipped = false;
      for (let number = 1; number <= last; number++) {
        const text = file.text[number - 1] ?? "",
          shown = test ? text.toLowerCase().includes(test) : everything || near.has(number);
        if (!shown || (!file.text.length && !lines.has(number))) {
          skipped = true;
          continue;
        }
        if (skipped && rows.length) rows.push(gap());
        skipped = false;
        rows.push(codeRow(number, most));
      }
      replace(body, rows);
      const first = body.querySelector("tr.opens");
      if (first) first.tabIndex = 0;
      summary.textContent =
        `${plural(lines.size, "line")} with figures, ${time(file.self)} of self time (${percent(file.self, whole + table.elsewhere)})` +
        (table.limits ? `. ${table.limits}` : "");
      problem.textContent = file.note;
      problem.hidden = !file.note;
    };
    const open = (name) => {
      file = table.files.find((one) => one.name === name) || table.files[0];
      lines = linesOf(table, file);
      app.keep(this, { file: file === table.files[0] ? "" : file.name, line: "" });
      render();
    };
    const choose = choice(
      "File",
      table.files.map((one) => [one.name, `${one.name} · ${time(one.self)}`]),
      file.name,
      open,
    );
    const ranked = table.files
      .flatMap((one) => [...linesOf(table, one).values()].map((line) => ({ file: one, line })))
      .sort((a, b) => b.line.self_ns - a.line.self_ns)
      .slice(0, 6);
    this.showLine = (name, number) => {
      choose.querySelector("select").value = name;
      this.search.reset(); // the line may be one that a search leaves out
      wanted = "";
      open(name);
      app.keep(this, { file: name, line: number });
      const row = body.querySelector(`tr[data-line="${number}"]`);
      row?.scrollIntoView({ block: "center" });
      row?.focus({ preventScroll: true });
    };
    append(hot, [
      ranked.map(({ file: one, line }) =>
        el(
          "li",
          { "data-value": line.self_ns },
          el(
            "span",
            { class: "bar-name" },
            el(
              "button",
              { type: "button", class: "link mono", onclick: () => this.showLine(one.name, line.number) },
              `${one.name}:${line.number}`,
            ),
            el("span", { class: "mono muted hot-code", text: (one.text[line.number - 1] || "").trim() }),
          ),
          meter(line.self_ns / (ranked[0].line.self_ns || 1)),
          el("span", { class: "bar-value", text: time(line.self_ns) }),
          el("span", { class: "bar-share", text: percent(line.self_ns, whole + table.elsewhere) }),
        ),
      ),
    ]);
    rowKeys(body, flip);
    this.search = searchBox("Find in the file", (text) => {
      wanted = text;
      render();
    });
    append(root, [
      el("section", { class: "panel hot-panel", "aria-label": "Most self time" }, el("h3", { text: "Most self time" }), hot),
      el(
        "div",
        { class: "toolbar" },
        this.search,
        choose,
        toggle("Whole file", everything, (value) => {
          everything = value;
          render();
        }),
      ),
      summary,
      problem,
      tableBox(
        "Source",
        el(
          "table",
          { class: "source", role: "treegrid", "aria-label": "Source" },
          el("caption", { class: "unseen", text: "Source with figures by line" }),
          el(
            "thead",
            {},
            el(
              "tr",
              {},
              columns.map(([, title, , hint]) => el("th", { scope: "col", class: "number", title: hint, text: title })),
              el("th", { scope: "col", class: "heat" }, el("span", { class: "unseen", text: "Share of self time" })),
              el("th", { scope: "col", class: "number", text: "Line" }),
              el("th", { scope: "col", text: "Code" }),
            ),
          ),
          body,
        ),
      ),
      table.elsewhere > 0 &&
        el("p", { class: "note", text: `${time(table.elsewhere)} more in events that no line of yours called.` }),
    ]);
    const line = Number(chosen.get("line"));
    render();
    if (line) this.showLine(file.name, line);
  },
};
