// What the page knows, when it asks again, and what it shows.

import { Problem, get, post, token } from "./api.js";
import { Chart } from "./chart.js";
import { h, show } from "./dom.js";
import { flowView, rangeSeconds } from "./flow.js";
import { groupPanel, groupPath } from "./group.js";
import { listPath, viewOf } from "./list.js";
import { encoded, plain, shown } from "./names.js";
import { overview } from "./overview.js";
import { problemNote } from "./parts.js";
import { address, changed, route } from "./route.js";
import { duration, many, time } from "./words.js";

const POLL_MS = 3_000;
const LONGEST_POLL_MS = 15_000;
const TYPING_MS = 250;
const REASON_GROUPS = 5;
const POINTS = 2_000;
// Cards with a line of what was; more would be too many questions.
const SPARKS = 24;
const SPARK_POINTS = 60;

const byId = (id) => document.getElementById(id);
const seconds = () => performance.now() / 1000;

const chart = new Chart();
const state = { here: route(), flows: null, remotes: [], details: null, sparks: new Map(), trouble: null };
// The daemon's clock less this page's, and when it last answered by the latter.
const clock = { ahead: 0, answered: null };
const now = () => clock.ahead + seconds();

// --- what is asked -----------------------------------------------------------------------

/** The last answer to a question that is asked again when `key` changes. */
class Slot {
  body = null;
  problem = null;
  busy = false;
  #key = null;

  async want(key, path) {
    if (key === this.#key) return;
    this.#key = key;
    this.busy = true;
    let body = null;
    let problem = null;
    try {
      body = await get(path);
    } catch (error) {
      problem = understood(error);
    }
    if (key !== this.#key) return;
    this.busy = false;
    // What passes is asked for again with the next poll, and what was shown stays.
    if (problem !== null && passes(problem)) this.#key = null;
    else Object.assign(this, { body, problem });
    render();
  }
}

function understood(error) {
  if (error instanceof Problem) return error;
  throw error;
}

function passes({ status }) {
  return status === 0 || status === 401 || status === 429 || status >= 500;
}

let wait = null;
let polling = false;
let pause = POLL_MS;

async function poll() {
  if (polling) return;
  polling = true;
  clearTimeout(wait);
  const sent = token.get();
  let rest = null;
  try {
    const answer = await get("flows");
    if (answer !== state.flows) {
      clock.ahead = answer.at - seconds();
      announce(state.flows, answer);
      state.flows = answer;
    }
    if (state.trouble) say("The daemon answers again.");
    clock.answered = seconds();
    state.trouble = null;
    pause = POLL_MS;
    // Instances may share one list of addresses, which then includes this instance.
    const own = (remote) => remote.answer?.instance.id === answer.instance.id;
    state.remotes = (await get("remotes")).remotes.filter((remote) => !own(remote));
  } catch (error) {
    const problem = understood(error);
    if (problem.status === 401) {
      // A token that was entered meanwhile is tried at once.
      if (token.get() !== sent) rest = 0;
      // Text that was typed since the last poll stays, and a canceled question is not repeated.
      else if (state.trouble?.status !== 401) locked(problem);
      return;
    }
    if (!state.trouble) say(`${problem.message}; ${problem.nextStep}`);
    state.trouble = problem;
    pause = Math.min(LONGEST_POLL_MS, pause * 2);
  } finally {
    polling = false;
    if (!document.hidden) wait = setTimeout(poll, rest ?? pause);
    load();
    render();
  }
}

function current() {
  const flows = state.flows?.flows ?? [];
  const name = state.here.flow ?? (flows.length === 1 && !state.remotes.length ? flows[0].name : null);
  return flows.find((flow) => flow.name === name) ?? null;
}

/** Ask for what belongs to what is shown, where a cycle has ended since. */
function load() {
  if (state.flows === null || state.trouble) return;
  const flow = current();
  if (flow !== null) loadDetails(flow);
  else if (state.here.flow === null) state.flows.flows.slice(0, SPARKS).forEach(loadSpark);
}

/** Changes with each cycle whose groups are known, also if another instance ran it. */
function stampOf(flow) {
  const { at, instance } = state.flows;
  return `${instance.id} ${flow.cycles} ${flow.age_seconds === null ? "" : Math.round(at - flow.age_seconds)}`;
}

function loadSpark(flow) {
  const { sparks } = state;
  if (!sparks.has(flow.name)) sparks.set(flow.name, new Slot());
  const path = `flows/${encoded(flow.name)}/history?limit=${SPARK_POINTS}`;
  sparks.get(flow.name).want(stampOf(flow), path);
}

function loadDetails(flow) {
  if (state.details?.name !== flow.name) {
    state.details = { name: flow.name, list: new Slot(), past: new Slot(), reasons: new Map(), group: new Slot(), groupName: null, page: 1 };
  }
  const { details, here } = state;
  const stamp = stampOf(flow);
  const path = `flows/${encoded(flow.name)}`;
  if (details.view !== viewOf(here.query)) Object.assign(details, { view: viewOf(here.query), list: new Slot() });
  details.list.want(`${stamp} ${listPath(here.query)}`, `${path}/${listPath(here.query)}`);
  const span = rangeSeconds(here.query);
  // Also without cycles, old points leave the time range.
  details.past.want(`${stamp} ${span} ${Math.floor((6 * now()) / span)}`, `${path}/history?from=${Math.floor(now() - span)}&limit=${POINTS}`);
  for (const reason of Object.keys(flow.totals.reasons)) {
    if (!details.reasons.has(reason)) details.reasons.set(reason, new Slot());
    details.reasons.get(reason).want(stamp, `${path}/groups?reason=${reason}&sort=outcome&order=desc&limit=${REASON_GROUPS}`);
  }
  if (details.groupName !== here.group) Object.assign(details, { groupName: here.group, group: new Slot(), page: 1 });
  const asked = here.group === null ? null : groupPath(flow.name, here.group, details.page);
  if (asked !== null) details.group.want(`${stamp} ${asked}`, asked);
}

// --- what is shown -----------------------------------------------------------------------

function render() {
  const { flows, here } = state;
  const flow = current();
  const at = now();
  show(byId("view"), ...content(flow, at));
  const place = document.querySelector("[data-island=chart]");
  if (place && flow) {
    if (chart.root.parentNode !== place) place.replaceChildren(chart.root);
    chart.update(state.details?.past.body?.points ?? [], at, rangeSeconds(here.query), flow.interval_seconds);
  }
  header(at);
  drawer(flow, at);
  document.title = flows === null ? "tsoffset" : title(flows.flows, flow);
}

function content(flow, at) {
  const { flows, here, trouble } = state;
  if (flows === null && trouble?.status === 401) return [h("p", { class: "note" }, "This daemon requires a token: enter it with the Token button above.")];
  if (flows === null) return [trouble ? problemNote(trouble) : h("p", { class: "quiet" }, "Loading…")];
  if (flow !== null && state.details?.name === flow.name) return flowView(state, flow, at, act);
  if (here.flow !== null && flow === null) {
    return [h("p", { class: "note" }, "There is no flow ", shown(here.flow), ". ", h("a", { href: "#" }, "See all flows"))];
  }
  return overview(state, at);
}

function title(all, flow) {
  const bad = all.filter(({ state: how }) => how === "failed" || how === "degraded").length;
  const of = flow === null ? "" : `${plain(flow.name)}: ${flow.state} – `;
  return `${bad ? `(${bad}) ` : ""}${of}tsoffset`;
}

function header(at) {
  const { flows, trouble } = state;
  const instance = flows?.instance;
  show(byId("instance"), instance ? [shown(instance.host), ` · version ${plain(instance.version)} · up ${duration(Math.max(0, Math.floor(at - instance.started_at)))}`] : "");
  const ago = clock.answered === null ? null : Math.floor(seconds() - clock.answered);
  const connection = byId("connection");
  connection.classList.toggle("bad", trouble !== null);
  const told = trouble?.status === 401 ? "token required" : ago === null ? "no answer yet" : trouble ? `${trouble.message}: last answer ${duration(ago)} ago` : `as of ${time(at - ago, at)}`;
  show(connection, document.createTextNode(told));
  byId("token").textContent = token.get() ? "Token ✓" : "Token";
}

const panel = byId("panel");

function drawer(flow, at) {
  const { here, details } = state;
  if (flow === null || here.group === null || details?.groupName !== here.group) {
    if (panel.open) panel.close();
    return;
  }
  show(panel, ...groupPanel(flow, here.group, details.group, at, act).filter(Boolean));
  if (!panel.open) panel.showModal();
}

// The address decides what is open: Escape changes that, and the dialog follows.
panel.addEventListener("cancel", (event) => {
  event.preventDefault();
  act.close();
});
// Some browsers close it at a second Escape whatever is said.
panel.addEventListener("close", () => {
  if (state.here.group !== null) act.close();
});
panel.addEventListener("click", (event) => {
  if (event.target === panel) act.close();
});

/** What is read out: a sentence that replaces the last one. */
function say(text) {
  byId("live").textContent = plain(text);
}

function announce(before, after) {
  const known = new Map((before?.flows ?? []).map((flow) => [flow.name, flow.state]));
  const news = after.flows.filter((flow) => known.has(flow.name) && known.get(flow.name) !== flow.state);
  if (news.length) say(news.map((flow) => [`${flow.name} is ${flow.state}`, ...flow.messages.slice(0, 1)].join(": ")).join(". "));
}

// --- what a person does ------------------------------------------------------------------

let typing = null;

const act = {
  /** What was typed into the search and is not asked for yet; null where all is. */
  typed: null,
  search(text) {
    clearTimeout(typing);
    act.typed = text;
    typing = setTimeout(() => {
      act.typed = null;
      replaced(changed(state.here, { search: text }));
      const list = state.details?.list;
      if (list) whenAnswered(list, (body) => say(many(body.total, viewOf(state.here.query) === "topics" ? "topic" : "group")));
    }, TYPING_MS);
  },
  narrow(changes) {
    location.hash = changed(state.here, changes);
  },
  range(name) {
    replaced(changed(state.here, { range: name, page: state.here.query.get("page") }));
  },
  close() {
    const { flow, query } = state.here;
    location.hash = address({ flow, query });
  },
  groupPage(page) {
    state.details.page = page;
    load();
  },
  async ask(flow, what) {
    try {
      await post(`flows/${encoded(flow.name)}/${what}`);
      say(`${what} of ${flow.name} requested.`);
    } catch (error) {
      const problem = understood(error);
      if (problem.status === 401) return locked(problem);
      ask("Request failed", `${problem.message}; ${problem.nextStep}`, [["Close"]]);
    }
    poll();
  },
  confirmPause(flow) {
    ask(`Pause ${plain(flow.name)}?`, "No new cycle starts until the flow is resumed, so the offsets on the target become stale. A running cycle is finished first.", [
      ["Pause", () => act.ask(flow, "pause")],
      ["Cancel"],
    ]);
  },
};

async function whenAnswered(slot, tell) {
  while (slot.busy) await new Promise((done) => setTimeout(done, 50));
  if (slot.body) tell(slot.body);
}

function replaced(hash) {
  history.replaceState(null, "", hash);
  state.here = route();
  load();
  render();
}

const asking = byId("ask");

/** A question with answers: `[word, what to do]`, the first of them the one that Enter gives. */
function ask(heading, text, choices, field = null) {
  const done = (todo) => {
    const value = asking.querySelector("input")?.value ?? "";
    asking.close();
    todo?.(value);
  };
  const buttons = choices.map(([word, todo], index) =>
    h("button", { type: index ? "button" : "submit", class: index ? null : "primary", onclick: index ? () => done(todo) : null }, word));
  const submit = (event) => {
    event.preventDefault();
    done(choices[0][1]);
  };
  asking.replaceChildren(h("form", { onsubmit: submit }, h("h2", { id: "ask-title" }, heading), h("p", {}, text), field, h("p", { class: "buttons" }, buttons)));
  // Closed and opened, so that the field has the focus.
  if (asking.open) asking.close();
  asking.showModal();
}

function askToken(text) {
  const field = h("label", {}, "Token", h("input", { type: "password", autocomplete: "off", required: true, spellcheck: "false" }));
  const use = (value) => {
    token.set(value);
    state.trouble = null;
    poll();
  };
  const forget = () => {
    token.remove();
    poll();
  };
  ask("Token", text, [["Use", use], ...(token.get() ? [["Forget", forget]] : []), ["Cancel"]], field);
}

function locked(problem) {
  token.remove();
  state.trouble = problem;
  askToken(`${problem.message}; enter the token of listeners.read.token or listeners.token.`);
}

byId("token").addEventListener("click", () =>
  askToken("With the token of listeners.token this page can pause, resume and sync. The token is kept until this tab is closed."));
byId("skip").addEventListener("click", () => byId("main").focus());

// --- what the browser tells --------------------------------------------------------------

addEventListener("hashchange", () => {
  const { here } = state;
  state.here = route();
  load();
  render();
  if (state.here.flow !== here.flow) {
    scrollTo(0, 0);
    if (!panel.open) byId("main").focus({ preventScroll: true });
  } else if (state.here.group === null && here.group === null) {
    intoView(byId("list"));
  }
});

/** So that who asked for other groups sees them. */
function intoView(element) {
  const top = element?.getBoundingClientRect().top ?? 0;
  if (top < 0 || top > innerHeight * 0.6) element?.scrollIntoView({ block: "start" });
}

addEventListener("keydown", (event) => {
  const writing = event.target.closest("input, select, textarea, dialog");
  if (event.key === "/" && !writing && !event.ctrlKey && !event.metaKey && byId("search")) {
    event.preventDefault();
    byId("search").focus();
  }
  if (event.key === "Escape" && event.target.id === "search") {
    event.target.value = "";
    event.target.blur();
    act.search("");
  }
});

document.addEventListener("visibilitychange", () => {
  if (document.hidden) clearTimeout(wait);
  else poll();
});
setInterval(() => {
  if (!document.hidden) render();
}, 1_000);
render();
poll();
