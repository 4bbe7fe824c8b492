// What the rules of the analysis found, most gain first.

import { el, heading } from "../widgets/dom.js";
import { percent, time } from "../widgets/format.js";

export const advice = {
  id: "advice",
  title: "Advice",
  available: (model) => model.about.findings.length > 0,
  build(model, root) {
    root.append(
      heading("Advice", "Each with what it rests on. Gains are estimates and do not add up."),
      el(
        "ol",
        { class: "findings" },
        model.about.findings.map((finding) =>
          el(
            "li",
            { class: "panel finding" },
            el(
              "div",
              { class: "finding-head" },
              el("h3", { text: finding.title }),
              finding.gain_ns != null &&
                el("span", {
                  class: "gain",
                  text: `about ${time(finding.gain_ns)}${finding.share != null ? ` · ${percent(finding.share, 1)}` : ""}`,
                }),
            ),
            el("p", { text: finding.detail }),
            (finding.evidence || []).length > 0 &&
              el(
                "ul",
                { class: "evidence" },
                finding.evidence.map((line) => el("li", { text: line })),
              ),
            el(
              "p",
              { class: "note" },
              finding.where && el("span", { class: "mono", text: finding.where }),
              el("span", { class: "tag", text: finding.rule }),
            ),
          ),
        ),
      ),
    );
  },
};
