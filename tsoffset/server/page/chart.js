// Past cycles over time: three panels on one time axis, with gaps where nothing is known.

import { h, s, show } from "./dom.js";
import { shown } from "./names.js";
import { compact, duration, many, number, tick, time } from "./words.js";

const LEFT = 62;
const RIGHT = 8;
const TOP = 22;
const HEIGHT = 74;
const GAP = 34;
const AXIS = 22;

const PANELS = [
  { title: "Age of the oldest target offset", lines: ["lag_seconds"], form: duration, steps: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600] },
  { title: "Records a failover would re-read, at most", key: "dashed: re-read bound of the translations", lines: ["lag_records", "reread_bound"], form: compact },
  { title: "Failed rows", lines: ["failed"], form: compact, strokes: true },
];
const TIME_STEPS = [5, 15, 60, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 2 * 86400];

/** Draws into `root`; a point is chosen with mouse, finger or arrow keys. */
export class Chart {
  constructor() {
    this.root = h("div", { class: "chart", tabindex: "0", role: "slider", "aria-label": "Past cycles", "aria-orientation": "horizontal" });
    this.points = [];
    this.now = 0;
    this.span = 0;
    this.interval = 60;
    this.chosen = null;
    this.width = 0;
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.root.addEventListener("pointermove", (event) => this.point(event));
    this.root.addEventListener("pointerdown", (event) => this.point(event));
    this.root.addEventListener("pointerleave", () => this.choose(null));
    this.root.addEventListener("blur", () => this.choose(null));
    new ResizeObserver(([entry]) => {
      const width = Math.floor(entry.contentRect.width);
      if (width !== this.width) {
        this.width = width;
        this.draw();
      }
    }).observe(this.root);
  }

  /** Show these points, of the last `span` seconds. */
  update(points, now, span, interval) {
    if (points === this.points && span === this.span && interval === this.interval) return;
    const at = this.points[this.chosen]?.at;
    Object.assign(this, { points, now, span, interval });
    const index = points.findIndex((point) => point.at === at);
    this.chosen = index < 0 ? null : index;
    this.draw();
  }

  key(event) {
    const last = this.points.length - 1;
    const here = this.chosen ?? last + 1;
    const to = { ArrowLeft: here - 1, ArrowDown: here - 1, ArrowRight: here + 1, ArrowUp: here + 1, PageUp: here + 10, PageDown: here - 10, Home: 0, End: last }[event.key];
    if (event.key === "Escape") this.choose(null);
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(Math.min(last, Math.max(0, to)));
  }

  point(event) {
    if (!this.points.length) return;
    const at = this.start + ((event.clientX - this.root.getBoundingClientRect().left - LEFT) / this.inner) * (this.end - this.start);
    let best = 0;
    this.points.forEach((one, index) => {
      if (Math.abs(one.at - at) < Math.abs(this.points[best].at - at)) best = index;
    });
    this.choose(best);
  }

  choose(index) {
    if (index === this.chosen) return;
    this.chosen = index;
    this.mark();
  }

  x(at) {
    return LEFT + ((at - this.start) / (this.end - this.start)) * this.inner;
  }

  draw() {
    if (!this.width) return;
    const { points, width } = this;
    this.inner = Math.max(50, width - LEFT - RIGHT);
    if (!points.length) {
      show(this.root, h("p", { class: "quiet empty" }, "No cycle in this time range."));
      this.said();
      return;
    }
    this.end = points.at(-1).at;
    this.start = Math.min(points[0].at, this.end - 4 * this.interval);
    let next = TOP;
    const panels = PANELS.map((panel) => {
      const top = next;
      const empty = this.nothing(panel);
      next += (empty === null ? HEIGHT : 0) + GAP;
      return this.panel(panel, top, empty);
    });
    const bottom = next - GAP;
    const height = bottom + AXIS;
    this.bottom = bottom;
    this.root.replaceChildren(
      s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" },
        s("defs", {}, s("pattern", { id: "hatch", width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("path", { d: "M0 0V6", class: "hatch" }))),
        this.gaps(bottom),
        panels,
        this.times(bottom),
        s("path", { class: "cursor", d: "" }), s("g", { class: "dots" })),
      h("div", { class: "tip", hidden: true }));
    this.mark();
  }

  /** Cycles without a result, as bands over all panels. */
  gaps(bottom) {
    const bands = [];
    this.points.forEach((point, index) => {
      if (point.groups !== null) return;
      const before = this.points[index - 1];
      const from = this.x(Math.max(this.start, before && this.joined(before, point) ? before.at : point.at - point.seconds));
      const to = Math.max(from + 2, this.x(point.at));
      const last = bands.at(-1);
      if (last && from - last.to < 1) last.to = to;
      else bands.push({ from, to });
    });
    return bands.map(({ from, to }) => [
      s("rect", { x: from, y: TOP - 4, width: to - from, height: bottom - TOP + 4, class: "band" }),
      s("rect", { x: from, y: TOP - 4, width: to - from, height: bottom - TOP + 4, fill: "url(#hatch)" }),
      to - from > 90 ? s("text", { x: (from + to) / 2, y: TOP + HEIGHT / 4 + 4, class: "band-name" }, "no result") : s("path", { class: "cross", d: `M${(from + to) / 2 - 3} ${TOP + 3}l6 6m0 -6l-6 6` }),
    ]);
  }

  joined(before, point) {
    return point.at - before.at < 3 * Math.max(this.interval, point.seconds);
  }

  /** What stands in the place of a panel's axes where there is nothing to draw; null where there is. */
  nothing({ lines, strokes }) {
    const values = this.points.flatMap((point) => lines.map((name) => point[name])).filter((value) => value !== null);
    if (!values.length) return "not known in this time range";
    return strokes && !values.some(Boolean) ? "none in this time range" : null;
  }

  panel({ title, key, lines, form, steps, strokes }, top, empty) {
    if (empty !== null) return s("text", { x: LEFT, y: top - 8, class: "heading" }, title, s("tspan", { class: "key" }, `: ${empty}`));
    const most = Math.max(1, ...this.points.flatMap((point) => lines.map((name) => point[name] ?? 0)));
    const step = steps?.find((one) => one * 2 >= most) ?? nice(most / 2);
    const y = (value) => top + HEIGHT - (value / (2 * step)) * HEIGHT;
    return s("g", {},
      s("text", { x: LEFT, y: top - 8, class: "heading" }, title, key && this.width > 560 ? s("tspan", { class: "key" }, ` (${key})`) : null),
      [0, step, 2 * step].map((value) => [
        s("path", { class: "grid", d: `M${LEFT} ${y(value)}H${LEFT + this.inner}` }),
        s("text", { x: LEFT - 8, y: y(value) + 4, class: "value" }, form(value)),
      ]),
      lines.map((name, index) => strokes ? this.strokes(name, y) : this.line(name, y, index, top)));
  }

  line(name, y, index, top) {
    const runs = [];
    let before = null;
    for (const point of this.points) {
      const known = point[name] !== null;
      if (known && before && this.joined(before, point)) runs.at(-1).push(point);
      else if (known) runs.push([point]);
      before = known ? point : null;
    }
    const place = (point) => `${this.x(point.at).toFixed(1)} ${y(point[name]).toFixed(1)}`;
    const d = runs.map((run) => `M${run.map(place).join("L")}`).join("");
    // A line of no length, which its round ends make a dot.
    const alone = runs.filter((run) => run.length === 1).map((run) => `M${place(run[0])}h0`).join("");
    const area = runs.map((run) => `M${this.x(run[0].at).toFixed(1)} ${top + HEIGHT}L${run.map(place).join("L")}V${top + HEIGHT}Z`).join("");
    return [index === 0 ? s("path", { class: "area", d: area }) : null, s("path", { class: `line line-${index}`, d }), alone ? s("path", { class: `line line-${index} alone`, d: alone }) : null];
  }

  strokes(name, y) {
    const d = this.points.filter((point) => point[name]).map((point) => `M${this.x(point.at).toFixed(1)} ${y(0).toFixed(1)}V${y(point[name]).toFixed(1)}`).join("");
    return s("path", { class: "strokes", d, "stroke-width": Math.min(6, Math.max(1.5, this.inner / this.points.length - 1)) });
  }

  times(bottom) {
    const span = this.end - this.start;
    const step = TIME_STEPS.find((one) => (span / one) * 84 <= this.inner) ?? nice(span / 6);
    const zone = new Date(this.end * 1000).getTimezoneOffset() * 60;
    const ticks = [];
    for (let at = Math.ceil((this.start - zone) / step) * step + zone; at <= this.end; at += step) ticks.push(at);
    const days = ticks.map((at) => new Date(at * 1000).toDateString());
    return ticks.map((at, index) => [
      s("path", { class: "tick", d: `M${this.x(at)} ${bottom}v4` }),
      s("text", { x: Math.min(this.x(at), LEFT + this.inner - 16), y: bottom + 17, class: "time" }, tick(at, span, days[index] !== days[index - 1])),
    ]);
  }

  /** The line at the chosen point, and what it was. */
  mark() {
    const tip = this.root.querySelector(".tip");
    const cursor = this.root.querySelector(".cursor");
    if (!tip || !cursor) return;
    const point = this.points[this.chosen];
    tip.hidden = !point;
    cursor.setAttribute("d", point ? `M${this.x(point.at)} ${TOP - 4}V${this.bottom}` : "");
    this.said();
    if (!point) return;
    show(tip, h("p", { class: "quiet" }, time(point.at, this.now)), told(point).map(([term, value]) =>
      h("p", {}, term ? h("span", {}, term) : null, term ? h("b", {}, value) : shown(value))));
    const x = this.x(point.at);
    const right = x + tip.offsetWidth + 14 > this.width;
    tip.style.setProperty("left", `${Math.max(0, right ? x - tip.offsetWidth - 10 : x + 10)}px`);
  }

  said() {
    const last = this.points.length - 1;
    const index = this.chosen ?? last;
    const point = this.points[index];
    const text = point ? `${time(point.at, this.now)}: ${told(point).map((one) => one.filter(Boolean).join(" ")).join(", ")}` : "no cycle in this time range";
    for (const [name, value] of Object.entries({ valuemin: 0, valuemax: Math.max(0, last), valuenow: Math.max(0, index), valuetext: text })) this.root.setAttribute(`aria-${name}`, value);
  }
}

function told(point) {
  const took = ["cycle took", duration(point.seconds)];
  if (point.groups === null) return [["", point.error ?? "no result"], took];
  return [
    ["oldest target offset", point.lag_seconds === null ? "not known" : duration(point.lag_seconds)],
    ["re-read", point.lag_records === null ? "not known" : many(point.lag_records, "record")],
    ["re-read bound", point.reread_bound === null ? "not known" : number(point.reread_bound)],
    ["failed rows", number(point.failed)],
    ["skipped", number(point.skipped)],
    ["committed", number(point.committed)],
    took,
  ];
}

/** The next of 1, 2 and 5 with zeros; whole. */
function nice(value) {
  const size = 10 ** Math.floor(Math.log10(Math.max(1, value)));
  return [1, 2, 5, 10].map((one) => one * size).find((one) => one >= value);
}
