// One group: each of its partitions, and what a failover would use there.

import { h } from "./dom.js";
import { encoded, flowName, plain, shown } from "./names.js";
import { amount, atLeast, kindBadge, problemNote } from "./parts.js";
import { many, number, since } from "./words.js";

const ROWS = 100;

/** The path that answers one group; null for a name that browsers take for a step in a path. */
export function groupPath(flow, group, page) {
  if (group === "." || group === "..") return null;
  return `flows/${encoded(flow)}/groups/${encoded(group)}?limit=${ROWS}&page=${page}`;
}

/** The children of the dialog. */
export function groupPanel(flow, group, { body, problem }, now, act) {
  return [
    h("div", { class: "head-line", "data-key": "head" },
      h("div", {}, h("p", { class: "quiet" }, "Group of ", flowName(flow)), h("h2", { id: "panel-title" }, shown(group))),
      h("button", { type: "button", class: "close", "aria-label": "Close", onclick: act.close }, "×")),
    groupPath(flow.name, group, 1) === null
      ? h("p", { class: "note" }, "A browser cannot request a group of this name: ",
        h("a", { href: `api/v1/translate?flow=${encoded(flow.name)}&group=${encoded(group)}` }, "see what a failover would use"))
      : null,
    problem === null ? null : problemNote(problem),
    body === null ? (problem === null ? h("p", { class: "quiet" }, "loading…") : null) : [summary(flow, body, now), h("ol", { class: "rows" }, body.rows.map((row) => rowItem(flow, row, now))), pages(body, act)],
  ];
}

function summary(flow, { group }, now) {
  return h("dl", { class: "figures" },
    h("div", {}, h("dt", {}, "outcome"), h("dd", {}, kindBadge(group.outcome))),
    h("div", {}, h("dt", {}, "precision"), h("dd", {}, group.precision === null ? "–" : kindBadge(group.precision))),
    h("div", {}, h("dt", {}, "consumer lag"), h("dd", {}, amount(group.consumer_lag, group.consumer_lag_unknown))),
    h("div", {}, h("dt", {}, "re-read by a failover"), h("dd", {}, group.lag_records === null ? "not known" : `${atLeast(flow, group.lag_records)}${number(group.lag_records)}${group.lag_unknown ? " + ?" : ""}`)),
    h("div", {}, h("dt", {}, "last in sync"), h("dd", {}, age(group.in_sync_at, now))));
}

function age(at, now) {
  return at === null ? "never" : `${since(at, now)} ago`;
}

function rowItem(flow, row, now) {
  const place = row.source_topic === null ? null : `${row.source_topic}-${row.partition}`;
  // What the target group has after the cycle.
  const there = row.outcome === "committed" ? row.target_offset : row.current_target_offset;
  const offset = (value) => (value === null ? "–" : number(value));
  return h("li", { "data-key": `=${place ?? ""}` },
    h("h3", {}, place === null ? "the whole group" : shown(place, { class: "name" }), kindBadge(row.outcome),
      row.precision === null ? null : kindBadge(row.precision)),
    row.reason === null && row.message === null ? null : h("p", { class: "told" }, row.reason === null ? null : h("code", {}, row.reason), " ", shown(row.message ?? "")),
    nextStep(row.next_step),
    place === null ? null : h("dl", {},
      pair("committed on the source", offset(row.source_offset)),
      pair("consumer lag", row.consumer_lag === null ? "not known" : number(row.consumer_lag)),
      pair("translated", [offset(row.target_offset), row.target_topic === null ? null : h("small", {}, " in ", shown(row.target_topic))]),
      pair("on the target now", offset(there)),
      pair("re-read", row.lag_records === null ? "not known" : atLeast(flow, row.lag_records) + number(row.lag_records)),
      pair("re-read bound", row.reread_bound === null ? "no bound" : `≤ ${number(row.reread_bound)}`),
      pair("last in sync", age(row.in_sync_at, now))));
}

/** What to do, with the command to paste; nothing where there is no step. */
export function nextStep(step) {
  return step === null ? null : h("p", { class: "told step" }, `${step.when}: `, h("code", {}, plain(step.command)));
}

function pair(term, value) {
  return h("div", {}, h("dt", {}, term), h("dd", {}, value));
}

function pages(body, act) {
  const last = Math.ceil(body.total / body.limit);
  if (last <= 1 && body.page === 1) return null;
  const to = (page, title) => h("button", { type: "button", disabled: page < 1 || page > last, onclick: () => act.groupPage(page) }, title);
  return h("nav", { class: "pager", "aria-label": "Pages of partitions" },
    to(Math.min(body.page - 1, last), "Previous"), h("p", {}, `page ${number(body.page)} of ${number(last)}, ${many(body.total, "partition")}`), to(body.page + 1, "Next"));
}
