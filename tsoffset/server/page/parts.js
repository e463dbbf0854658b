// What more than one view shows: a flow's state, its rhythm, and bars of counts.

import { h, s } from "./dom.js";
import { MEANING, duration, many, number, words } from "./words.js";

// Each state has its own shape, so that color alone does not tell them apart.
const SIGNS = {
  starting: "M4 8h.01M8 8h.01M12 8h.01",
  running: "M3.5 8.5l3 3 6-7",
  degraded: "M8 2.5L14.5 13.5H1.5ZM8 6.5v3M8 11.7v.01",
  failed: "M4 4l8 8M12 4l-8 8",
  paused: "M5.5 3.5v9M10.5 3.5v9",
  standby: "M8 3.2a4.8 4.8 0 1 0 .01 0M8 5.5v3l1.8 1.2",
};

function sign(state) {
  return s("svg", { viewBox: "0 0 16 16", class: "sign", "aria-hidden": "true" },
    s("path", { d: SIGNS[state] ?? SIGNS.starting }));
}

export function stateBadge(state) {
  return h("span", { class: "state", "data-state": state }, sign(state), h("span", {}, state));
}

export function kindBadge(kind) {
  return h("span", { class: "kind", "data-kind": kind }, h("i", { class: "swatch" }), words(kind));
}

/** A flow of an answer made at `at`; as of `now` its last cycle may be too old to be shown as known,
 * because the daemon has not answered since then. */
export function aged(flow, at, now) {
  const seen = at - flow.age_seconds;
  const usual = Math.max(flow.interval_seconds, flow.last_cycle?.seconds ?? 0);
  const known = flow.unknown_since !== null || flow.age_seconds === null || now - seen <= 2 * usual;
  return known ? flow : { ...flow, unknown_since: seen };
}

/** How far a flow is on the way to its next cycle, and what it does now. */
export function rhythm(flow, now) {
  const { part, text } = step(flow, now);
  return h("div", { class: "rhythm" },
    h("p", {}, text),
    h("div", { class: "track", "aria-hidden": "true" },
      h("div", { style: { transform: `scaleX(${Math.min(1, Math.max(0, part)).toFixed(4)})` } })));
}

function step(flow, now) {
  if (flow.running_since !== null) {
    const ran = Math.max(0, now - flow.running_since);
    return { part: ran / flow.limit_seconds,
      text: `cycle running for ${duration(Math.floor(ran))}, limit ${duration(flow.limit_seconds)}` };
  }
  if (flow.state === "paused") return { part: 0, text: "paused by an operator" };
  if (flow.state === "standby") return { part: 0, text: flow.leader ? `${flow.leader.host} leads this flow` : "another instance leads this flow" };
  if (flow.state === "failed" && flow.next_at === null) return { part: 0, text: "no cycle is scheduled" };
  if (flow.next_at === null) return { part: 0, text: `a cycle every ${duration(flow.interval_seconds)}` };
  const left = flow.next_at - now;
  const text = left > 0 ? `next cycle in ${duration(Math.ceil(left))}` : "next cycle is due";
  return { part: 1 - left / flow.interval_seconds, text: `${text}, one every ${duration(flow.interval_seconds)}` };
}

/** A bar of counts by kind. `href` makes a kind's entry in the legend lead to those of it. */
export function bar(title, counts, order, href = null) {
  const kinds = order.filter((kind) => counts[kind]);
  const told = kinds.map((kind) => `${words(kind)} ${number(counts[kind])}`).join(", ");
  return h("figure", { class: "bar" },
    h("figcaption", {}, title),
    h("div", { class: "segments", role: "img", "aria-label": told || "none yet" },
      kinds.map((kind) => h("i", { "data-kind": kind, "data-key": kind, style: { "flex-grow": String(counts[kind]) } }))),
    href === null ? null : h("ul", { class: "legend" }, kinds.map((kind) =>
      h("li", { "data-key": kind },
        h("a", { href: href(kind), title: MEANING[kind] ?? null },
          h("i", { class: "swatch", "data-kind": kind }), h("span", {}, words(kind)), h("b", {}, number(counts[kind])))))));
}

/** How many groups of a flow are not in place on the target. */
export function missing({ not_in_place }) {
  return Object.values(not_in_place).reduce((sum, groups) => sum + groups, 0);
}

/** A sum of what is known, and how much is not. */
export function amount(known, unknown) {
  if (known === null) return h("span", { title: "not known" }, "?");
  return unknown ? [number(known), h("span", { class: "quiet", title: `and ${many(unknown, "partition")} where it is not known` }, " + ?"), h("span", { class: "unseen" }, ` and ${many(unknown, "partition")} not known`)] : number(known);
}

/** The mark of a number of records to re-read that may have grown since the last known cycle. */
export function atLeast(flow, records) {
  return flow.unknown_since === null || records === null ? "" : "≥ ";
}

/** Why there is no answer, and what to do. */
export function problemNote(problem) {
  return h("p", { class: "note bad", role: "alert" }, `${problem.message}; ${problem.nextStep}`);
}
