// All flows, a card each, and those of other daemons.

import { h, s } from "./dom.js";
import { flowName, plain, shown } from "./names.js";
import { aged, bar, missing, rhythm, stateBadge } from "./parts.js";
import { address } from "./route.js";
import { OUTCOMES, compact, many, number, since, time } from "./words.js";

/** When the oldest of what a failover would use was in place; null where nothing ever was. */
export function oldest(flow, at) {
  const age = flow.totals.lag_seconds;
  return age === null ? null : at - age;
}

function card(of, answer, now, href, { remote = false, past = null } = {}) {
  const flow = aged(of, answer.at, now);
  const { totals } = flow;
  const known = totals.pairs > totals.lag_unknown;
  const inPlace = oldest(flow, answer.at);
  return h("article", { class: "card", "data-state": flow.state, "data-key": flow.name },
    h("header", {},
      h(remote ? "h3" : "h2", { class: "of" }, h("a", { href, rel: remote ? "noopener noreferrer" : null, target: remote ? "_blank" : null }, flowName(flow))),
      stateBadge(flow.state)),
    h("dl", { class: "figures" },
      h("div", {},
        h("dt", {}, "groups ready"),
        h("dd", {}, totals.groups ? `${number(totals.groups - missing(totals))} of ${number(totals.groups)}` : "–")),
      h("div", {},
        h("dt", {}, "re-read, at most"),
        h("dd", { title: known ? many(totals.lag_records, "record") : null }, flow.unknown_since === null ? (known ? compact(totals.lag_records) : "–") : "unknown")),
      h("div", {},
        h("dt", {}, "oldest target offset"),
        h("dd", {}, inPlace === null ? "–" : since(inPlace, now)))),
    past === null ? null : spark(past),
    bar("", totals.outcomes, OUTCOMES),
    h("p", { class: "says" }, flow.messages.length ? shown(flow.messages[0]) : attention(flow)),
    flow.unknown_since === null ? null : h("p", { class: "says" }, `Unknown since ${time(flow.unknown_since, now)}: a failover would re-read at least ${many(totals.lag_records, "record")}.`),
    rhythm(flow, now));
}

/** What a failover would read again, cycle by cycle; bands where a cycle came to nothing. */
function spark(points) {
  const most = Math.max(1, ...points.map((point) => point.lag_records ?? 0));
  const step = 100 / Math.max(1, points.length - 1);
  let line = "";
  let bands = "";
  points.forEach((point, index) => {
    const x = (index * step).toFixed(2);
    const joined = index > 0 && points[index - 1].lag_records !== null;
    if (point.lag_records !== null) line += `${joined ? "L" : "M"}${x} ${(28 - (25 * point.lag_records) / most).toFixed(2)}`;
    if (point.groups === null) bands += `M${((index - 1) * step).toFixed(2)} 0h${step.toFixed(2)}v30h-${step.toFixed(2)}Z`;
  });
  return s("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", "aria-hidden": "true" },
    s("path", { class: "bands", d: bands }), s("path", { class: "ground", d: "M0 29.5H100" }), s("path", { class: "line", d: line }));
}

function attention(flow) {
  const { totals } = flow;
  const away = missing(totals);
  if (!totals.groups) return noGroups(flow);
  return away ? `${many(away, "group")} not ready, of ${number(totals.groups)}` : "every group is ready";
}

/** Why there are no groups to show. */
export function noGroups(flow) {
  if (flow.age_seconds !== null) return "No group has a committed offset in a topic of this flow.";
  return flow.leads ? "No cycle has reached both clusters yet." : "This instance knows of no cycle of this flow.";
}

function summary(flows) {
  const counts = new Map();
  for (const { state } of flows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return [...counts].map(([state, count]) => h("span", { "data-key": state }, stateBadge(state), ` ${count}`));
}

/** `state` has the answers to /flows and /remotes. */
export function overview({ flows: answer, remotes, sparks }, now) {
  const nothing = h("div", { class: "note" },
    h("p", {}, h("strong", {}, "No flow is enabled.")),
    h("p", {}, "Set for example ", h("code", {}, "A->B.enabled = true"), " in the configuration file; the daemon loads the change while it runs."));
  return [
    h("h1", { class: "unseen" }, "Flows of this daemon"),
    h("p", { class: "summary" }, summary(answer.flows)),
    answer.flows.length
      ? h("section", { class: "cards", "aria-label": "Flows of this daemon" },
        answer.flows.map((flow) => card(flow, answer, now, address({ flow: flow.name }), { past: sparks.get(flow.name)?.body?.points ?? [] })))
      : nothing,
    remotes.map((remote) => remoteSection(remote, now)),
  ];
}

function remoteSection(remote, now) {
  const { url, answer, answered_at: answeredAt, error } = remote;
  const page = `${url}/`;
  // What its clock says at the moment that is `now` here.
  const then = answer === null ? 0 : answer.at + (now - answeredAt);
  return h("section", { class: "remote", "data-key": url, "aria-label": `Flows of ${plain(url)}` },
    h("h2", {}, "at ", h("a", { href: page, rel: "noopener noreferrer", target: "_blank" }, shown(url)),
      answer === null ? null : [" ", h("small", {}, shown(answer.instance.host), `, version ${plain(answer.instance.version)}`)]),
    error === null ? null : h("p", { class: "note bad" }, shown(error),
      answeredAt === null ? null : ` (last answer ${time(answeredAt, now)})`),
    answer === null && error === null ? h("p", { class: "note" }, "no answer yet") : null,
    answer === null ? null : h("div", { class: "cards" }, answer.flows.map((flow) =>
      card(flow, answer, then, page + address({ flow: flow.name }), { remote: true }))));
}
