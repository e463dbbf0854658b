// The groups or topics of a flow: searched, filtered, ordered and cut into pages by the daemon.

import { h } from "./dom.js";
import { shown } from "./names.js";
import { amount, atLeast, kindBadge, problemNote } from "./parts.js";
import { address, changed } from "./route.js";
import { OUTCOMES, PRECISIONS, many, number, since, words } from "./words.js";

const ITEMS = 50;
const ASKED = ["search", "outcome", "precision", "reason", "sort", "order", "page"];

const COLUMNS = [
  { order: "name", title: "Name" },
  { order: "outcome", title: "Outcome" },
  { order: "precision", title: "Precision" },
  { order: "consumer_lag", title: "Consumer lag", about: "records: log end of the source minus committed offset, as of the cycle", amount: true },
  { order: "lag_records", title: "Re-read", about: "upper bound of the records that a failover now would re-read", amount: true },
  { order: "lag_seconds", title: "Age", about: "age of the target offset: time since it was last in sync", amount: true },
  { order: "partitions", title: "Partitions", amount: true },
];

const NOT_MIRRORED = "About how many records the target lacks, estimated from the offsets after the last record pair on both clusters. Transaction markers and compacted records have an offset but no copy and are counted, so a mirror that has copied everything may still show a few.";

/** What a route's list is: `groups` or `topics`. */
export function viewOf(query) {
  return query.get("view") === "topics" ? "topics" : "groups";
}

/** The path below /flows/{flow} that answers the list of a route. */
export function listPath(query) {
  const asked = new URLSearchParams({ limit: String(ITEMS) });
  for (const name of ASKED) if (query.has(name)) asked.set(name, query.get(name));
  return `${viewOf(query)}?${asked}`;
}

export function listSection(flow, details, here, now, act) {
  const view = viewOf(here.query);
  const { body, problem, busy } = details.list;
  const tab = (name, title) => h("a", { href: changed(here, { view: name === "topics" ? name : null, search: null, outcome: null, precision: null, reason: null, sort: null, order: null }),
    "aria-current": view === name ? "true" : null }, title);
  return h("section", { class: "panel list", id: "list", "data-key": "list", "aria-labelledby": "list-title", "aria-busy": String(busy) },
    h("div", { class: "head" },
      h("h2", { id: "list-title", class: "unseen" }, view === "topics" ? "Topics" : "Groups"),
      h("nav", { class: "tabs", "aria-label": "Lists" }, tab("groups", "Groups"), tab("topics", "Topics")),
      h("p", { class: "total" }, body ? many(body.total, view === "topics" ? "topic" : "group") : "")),
    tools(flow, here, view, act),
    problem === null ? null : problemNote(problem),
    body === null ? null : body.total === 0 ? h("p", { class: "quiet" }, nothing(here)) : [table(flow, body[view], view, here, now, act), pager(body, here)]);
}

function tools(flow, here, view, act) {
  const choice = (name, title, values) => {
    const chosen = here.query.get(name) ?? "";
    const offered = chosen && !values.includes(chosen) ? [...values, chosen] : values;
    return h("label", {}, h("span", { class: "unseen" }, title),
      h("select", { id: `choose-${name}`, value: chosen, onchange: (event) => act.narrow({ [name]: event.target.value }) },
        h("option", { value: "" }, `any ${title.toLowerCase()}`),
        offered.map((value) => h("option", { value }, words(value)))));
  };
  const narrowed = ["search", "outcome", "precision", "reason"].some((name) => here.query.has(name));
  return h("div", { class: "tools", role: "search", "aria-label": view === "topics" ? "Topics" : "Groups" },
    h("label", { class: "search" }, h("span", { class: "unseen" }, `Search ${view} by name`),
      h("input", { id: "search", type: "search", placeholder: `Search ${view}`, autocomplete: "off", spellcheck: "false", maxlength: "300",
        "aria-keyshortcuts": "/", value: act.typed ?? here.query.get("search") ?? "", oninput: (event) => act.search(event.target.value) }),
      h("kbd", { "aria-hidden": "true" }, "/")),
    choice("outcome", "Outcome", OUTCOMES),
    choice("precision", "Precision", PRECISIONS),
    choice("reason", "Reason", Object.keys(flow.totals.reasons).sort()),
    h("button", { type: "button", class: narrowed ? null : "away", onclick: () => act.narrow({ search: null, outcome: null, precision: null, reason: null }) }, "Show all"));
}

function nothing(here) {
  return viewOf(here.query) === "topics" ? "No topic matches." : "No group matches.";
}

function table(flow, entries, view, here, now, act) {
  const sort = here.query.get("sort") ?? "name";
  const falling = here.query.get("order") === "desc";
  const topics = view === "topics";
  const columns = topics ? [...COLUMNS, { title: "Not mirrored", about: NOT_MIRRORED, amount: true }] : COLUMNS;
  const head = ({ order, title, about, amount }) => {
    const here = order === sort;
    const marks = [amount ? "amount" : "", order === "name" ? "of-name" : ""].join(" ");
    const next = here ? !falling : Boolean(amount) || order === "outcome";
    return h("th", { scope: "col", class: marks, "aria-sort": here ? (falling ? "descending" : "ascending") : null },
      order ? h("button", { type: "button", title: about ?? null, onclick: () => act.narrow({ sort: order, order: next ? "desc" : null }) },
        amount ? null : title, h("span", { class: "way", "aria-hidden": "true" }, here ? (falling ? "↓" : "↑") : ""), amount ? title : null) : h("span", { title: about }, title));
  };
  return h("div", { class: "scroll" }, h("table", { onkeydown: walk },
    h("caption", { class: "unseen" }, `${topics ? "Topics" : "Groups"} of ${flow.name}`),
    h("thead", {}, h("tr", {}, columns.map(head))),
    h("tbody", {}, entries.map((entry) => line(flow, entry, topics, here, now)))),
    topics ? h("p", { class: "quiet" }, NOT_MIRRORED.replace("About", "Not mirrored: about")) : null);
}

function line(flow, entry, topics, here, now) {
  const name = shown(entry.name, { class: "name" });
  return h("tr", { "data-key": `=${entry.name}` },
    h("th", { scope: "row", class: "of-name" },
      topics ? name : h("a", { href: address({ flow: flow.name, group: entry.name, query: here.query }) }, name)),
    h("td", {}, kindBadge(entry.outcome), entry.reasons.slice(0, 2).map(({ reason }) => h("code", { class: "why" }, reason)),
      entry.reasons.length > 2 ? h("span", { class: "quiet" }, ` +${entry.reasons.length - 2}`) : null),
    h("td", {}, entry.precision === null ? "–" : kindBadge(entry.precision)),
    h("td", { class: "amount" }, amount(entry.consumer_lag, entry.consumer_lag_unknown)),
    h("td", { class: "amount" }, atLeast(flow, entry.lag_records), amount(entry.lag_records, entry.lag_unknown)),
    h("td", { class: "amount" }, entry.in_sync_at === null ? "never" : since(entry.in_sync_at, now)),
    h("td", { class: "amount" }, number(entry.partitions)),
    topics ? h("td", { class: "amount" }, entry.replication_lag_records === null ? "–" : `${entry.replication_lag_records ? "≈ " : ""}${number(entry.replication_lag_records)}`) : null);
}

/** Arrow keys go from name to name. */
function walk(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const links = [...event.currentTarget.querySelectorAll("tbody a")];
  const at = links.indexOf(document.activeElement);
  if (!step || at < 0) return;
  event.preventDefault();
  links[at + step]?.focus();
}

function pager(body, here) {
  const last = Math.max(1, Math.ceil(body.total / body.limit));
  if (last === 1 && body.page === 1) return null;
  const to = (page, title, sign) => {
    const off = page < 1 || page > last || page === body.page;
    return h("a", { href: off ? null : changed(here, { page: page === 1 ? null : page }), "aria-label": title, "aria-disabled": off ? "true" : null, role: "link" }, sign);
  };
  const first = (body.page - 1) * body.limit + 1;
  const range = first > body.total ? "none" : `${number(first)}–${number(Math.min(body.total, first + body.limit - 1))}`;
  return h("nav", { class: "pager", "aria-label": "Pages" },
    to(1, "First page", "«"), to(Math.min(body.page - 1, last), "Previous page", "‹"),
    h("p", {}, `${range} of ${number(body.total)}`),
    to(body.page + 1, "Next page", "›"), to(last, "Last page", "»"));
}
