// One flow: how it is, what a failover would cost, what was not synced, and its list.

import { token } from "./api.js";
import { h } from "./dom.js";
import { nextStep } from "./group.js";
import { listSection } from "./list.js";
import { flowName, plain, shown } from "./names.js";
import { noGroups, oldest } from "./overview.js";
import { aged, bar, kindBadge, missing, rhythm, stateBadge } from "./parts.js";
import { address, changed } from "./route.js";
import { FAILURES, OUTCOMES, PRECISIONS, duration, many, number, since, time } from "./words.js";

const RANGES = { hour: 3600, "6 hours": 6 * 3600, day: 86400, week: 7 * 86400 };

/** The seconds that a chart goes back, by the name in the address. */
export function rangeSeconds(query) {
  return RANGES[query.get("range")] ?? RANGES.hour;
}

/** `details` has the answers about this flow, `act` is called with what an operator asks for. */
export function flowView({ flows: answer, details, here }, of, now, act) {
  const flow = aged(of, answer.at, now);
  // A filter may leave out every group; then there is a cycle that says so.
  const known = flow.age_seconds !== null;
  const alone = answer.flows.length === 1;
  return [
    h("div", { class: "title", "data-key": "title" },
      h("div", {},
        alone ? null : h("p", { class: "back" }, h("a", { href: "#" }, "All flows")),
        h("h1", {}, flowName(flow))),
      h("p", { class: "since" }, stateBadge(flow.state), ` since ${time(flow.state_since, now)}`,
        flow.commits ? null : h("span", { class: "tag" }, "plan only: committing is disabled")),
      actions(flow, act)),
    messages(flow, answer.warnings),
    h("div", { class: "hero", "data-key": "hero" }, failover(flow, answer, now), figures(flow, now)),
    known ? bars(flow, here) : null,
    flow.cycles === 0 ? null : h("section", { class: "panel", "data-key": "chart", "aria-labelledby": "chart-title" },
      h("div", { class: "head" },
        h("h2", { id: "chart-title" }, "Over time"),
        h("div", { class: "choice", role: "group", "aria-label": "Time range" },
          Object.keys(RANGES).map((range) =>
            h("button", { type: "button", "aria-pressed": String(RANGES[range] === rangeSeconds(here.query)), onclick: () => act.range(range) }, range)))),
      h("div", { "data-island": "chart" })),
    !known ? null : h("section", { class: "panel", "data-key": "reasons", "aria-labelledby": "reasons-title" },
      h("h2", { id: "reasons-title" }, "Not synced"), reasons(flow, details, here)),
    known ? listSection(flow, details, here, now, act) : null,
  ];
}

function actions(flow, act) {
  if (!token.get()) return null;
  const paused = flow.state === "paused";
  return h("div", { class: "actions", role: "group", "aria-label": "Commands to the daemon" },
    h("button", { type: "button", onclick: () => act.ask(flow, "sync"), disabled: paused }, "Sync now"),
    paused
      ? h("button", { type: "button", onclick: () => act.ask(flow, "resume") }, "Resume")
      : h("button", { type: "button", onclick: () => act.confirmPause(flow) }, "Pause"));
}

function messages(flow, warnings) {
  const others = flow.others.map((other) => `${other.host}, process ${other.pid}, version ${other.version}`);
  const told = [
    [flow.state, flow.messages],
    ["configuration", warnings],
    ["lists changed", flow.lists],
    ["other instances", others],
  ].filter(([, texts]) => texts.length);
  if (!told.length) return null;
  return h("dl", { class: "messages", "data-key": "messages", "data-state": flow.state },
    told.map(([about, texts]) => h("div", { "data-key": texts === flow.messages ? "messages" : about }, h("dt", {}, about), texts.map((text) => h("dd", {}, shown(text))))));
}

function failover(flow, answer, now) {
  if (!flow.totals.groups) {
    const step = !flow.leads ? "See the instance that leads this flow."
      : flow.age_seconds === null ? "Groups appear after the first cycle that reaches both clusters."
      : "Check the lists of groups and topics in the configuration.";
    return h("section", { class: "failover" },
      h("h2", {}, "What a failover would re-read"),
      h("p", { class: "none" }, noGroups(flow)),
      h("p", { class: "quiet" }, step));
  }
  const { totals } = flow;
  const inPlace = oldest(flow, answer.at);
  const unknown = totals.lag_unknown;
  const known = totals.pairs > unknown;
  const away = Object.entries(totals.not_in_place).sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  const not = missing(totals);
  const ready = `${number(totals.groups - not)} of ${number(totals.groups)}`;
  const big = flow.unknown_since === null
    ? [h("b", {}, ready), h("span", {}, "groups ready")]
    : [h("b", {}, `unknown since ${time(flow.unknown_since, now)}`),
      h("span", {}, `at least ${many(totals.lag_records, "record")} would be re-read`,
        flow.lag_estimate_records === null ? "" : `; about ${number(flow.lag_estimate_records)} at the consumers' last known rate`)];
  return h("section", { class: "failover", "aria-labelledby": "failover-title" },
    h("h2", { id: "failover-title" }, "If consumers moved to ", shown(flow.target), " now"),
    h("p", { class: flow.unknown_since === null ? "big" : "big unknown" }, big),
    h("ul", {},
      flow.unknown_since === null
        ? h("li", {}, known ? ["at most ", h("b", {}, many(totals.lag_records, "record")), " would be re-read"] : "the number of records re-read is not known")
        : h("li", {}, h("b", {}, ready), " groups were ready"),
      not ? h("li", {}, h("b", {}, number(not)), ` not ready (${away.map(([reason, groups]) => `${number(groups)} ${plain(reason)}`).join(", ")})`) : null,
      h("li", {}, inPlace === null ? "no group has been in sync yet" : ["the oldest target offset is ", h("b", {}, since(inPlace, now)), " old"]),
      totals.never_in_sync ? h("li", {}, h("b", {}, many(totals.never_in_sync, "group")), " never in sync") : null,
      flow.last_cycle && !flow.last_cycle.reached ? h("li", {}, "as of the last cycle that reached both clusters") : null,
      totals.pairs > totals.consumer_lag_unknown
        ? h("li", {}, "consumers are ", h("b", {}, many(totals.consumer_lag, "record")), ` behind on ${plain(flow.source)}`) : null,
      unknown ? h("li", {}, h("b", {}, many(unknown, "partition")), " without a known usable offset on the target") : null));
}

function figures(flow, now) {
  const last = flow.last_cycle;
  const none = flow.leads ? "none yet" : "none on this instance";
  const rows = [
    ["last cycle", last === null ? none : `${outcomeOf(last)}, took ${duration(last.seconds)}`],
    ["ended", last === null ? "–" : `${since(last.ended_at, now)} ago`],
    ["last success", flow.last_success_at === null ? none : `${since(flow.last_success_at, now)} ago`],
    ["cycles", number(flow.cycles)],
    ["cycles without a result", flow.failures ? `${number(flow.failures)}, ${flow.failures_in_a_row} in a row now` : "0"],
    ["skipped, previous one still running", number(flow.late)],
    ["stopped at the time limit", number(flow.over_limit)],
  ];
  return h("section", { class: "facts", "aria-label": "Cycles" },
    rhythm(flow, now),
    h("dl", {}, rows.map(([term, value]) => h("div", {}, h("dt", {}, term), h("dd", {}, value)))));
}

function outcomeOf(cycle) {
  if (cycle.over_limit) return "over the time limit";
  if (!cycle.reached) return "no result";
  return cycle.succeeded ? "no row failed" : "some rows failed";
}

function bars(flow, here) {
  const { totals } = flow;
  const to = (name) => (kind) => changed(here, { view: null, search: null, reason: null, outcome: null, precision: null, [name]: kind });
  const none = totals.groups - PRECISIONS.reduce((sum, kind) => sum + (totals.precisions[kind] ?? 0), 0);
  return h("section", { class: "bars", "data-key": "bars", "aria-label": `${many(totals.groups, "group")} with ${many(totals.pairs, "partition")}` },
    bar(`${many(totals.groups, "group")} by outcome`, totals.outcomes, OUTCOMES, to("outcome")),
    bar(none ? `by precision (${number(none)} without a translation)` : "by precision", totals.precisions, PRECISIONS, to("precision")));
}

function reasons(flow, details, here) {
  const counted = Object.entries(flow.totals.reasons).sort(([a, m], [b, n]) =>
    FAILURES.includes(b) - FAILURES.includes(a) || n - m || (a < b ? -1 : 1));
  if (!counted.length) return h("p", { class: "quiet" }, "No row was skipped or failed.");
  return h("div", { class: "reasons" }, counted.map(([reason, rows]) => {
    const found = details.reasons.get(reason)?.body ?? null;
    const all = changed(here, { reason, outcome: null, precision: null, search: null, view: null });
    return h("details", { "data-key": reason, open: counted[0][0] === reason },
      h("summary", {},
        kindBadge(FAILURES.includes(reason) ? "failed" : "skipped"), h("code", {}, reason), h("span", { class: "count" }, many(rows, "row")),
        h("span", { class: "first" }, found?.groups[0]?.message ? shown(found.groups[0].message) : "")),
      found === null ? h("p", { class: "quiet" }, "loading…") : [
        h("ul", {}, found.groups.map((group) => h("li", { "data-key": `=${group.name}` },
          h("a", { href: address({ flow: flow.name, group: group.name, query: here.query }) }, shown(group.name, { class: "name" })),
          group.message === null ? null : h("p", {}, shown(group.message)), nextStep(group.next_step)))),
        h("p", {}, h("a", { href: all, "aria-label": `List all groups with ${plain(reason)}` },
          `${found.total > found.groups.length ? `All ${number(found.total)} groups` : "In the list"}`)),
      ]);
  }));
}
