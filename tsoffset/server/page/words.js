// Numbers, times and what the API's words mean, as a person reads them.

const NUMBER = new Intl.NumberFormat("en");
const COMPACT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const CLOCK = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const MINUTE = new Intl.DateTimeFormat("en-GB", { timeStyle: "short" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

export const OUTCOMES = ["committed", "would_commit", "unchanged", "skipped", "failed"];
export const PRECISIONS = ["exact", "bounded", "frontier", "unproven"];

// The reasons of rows that failed; all others are of rows that were skipped.
export const FAILURES = [
  "AUTHENTICATION",
  "AUTHORIZATION",
  "UNREACHABLE",
  "TIMEOUT",
  "NO_LEADER",
  "COORDINATOR",
  "CORRUPT_BATCH",
  "UNSUPPORTED_VERSION",
  "INTERNAL",
];

export const MEANING = {
  committed: "the offset was committed on the target",
  would_commit: "would be committed, but committing is disabled",
  unchanged: "the target offset was already correct",
  skipped: "not synced, for the reason given",
  failed: "an error; retried in the next cycle",
  exact: "no record is re-read",
  bounded: "a known, limited number of records may be re-read",
  frontier: "the mirror has not reached the committed offset; the group resumes at the target's log end",
  unproven: "not proven: records may be re-read or skipped, without a bound",
};

export const number = (value) => NUMBER.format(value);
export const compact = (value) => COMPACT.format(value);
export const words = (name) => name.replaceAll("_", " ");

/** `1 group`, `2 groups`. */
export function many(count, one) {
  return `${number(count)} ${count === 1 ? one : `${one}s`}`;
}

const UNITS = [
  ["d", 86400],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** Seconds in one unit or two. */
export function duration(seconds) {
  if (seconds < 0.95) return seconds === 0 ? "0 s" : `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const at = UNITS.findIndex(([unit, size]) => whole >= 2 * size || unit === "s");
  const [unit, size] = UNITS[at];
  const count = Math.floor(whole / size);
  const [small, smaller] = UNITS[at + 1] ?? [];
  const rest = small ? Math.floor((whole % size) / smaller) : 0;
  return `${number(count)} ${unit}${rest ? ` ${rest} ${small}` : ""}`;
}

/** How long ago it was, in whole seconds; nothing lies ahead. */
export function since(at, now) {
  return duration(Math.max(0, Math.floor(now - at)));
}

/** A time of day; with the day where that is another one than `now`'s. */
export function time(at, now) {
  const date = new Date(at * 1000);
  const far = Math.abs(now - at) > 86400 / 2;
  return far ? `${DAY.format(date)}, ${MINUTE.format(date)}` : CLOCK.format(date);
}

/** A label on a time axis of so many seconds; with the date at the first one of a day. */
export function tick(at, span, withDate) {
  const date = new Date(at * 1000);
  if (span > 3 * 86400) return DAY.format(date);
  return `${withDate ? `${DAY.format(date)}, ` : ""}${span < 300 ? CLOCK.format(date) : MINUTE.format(date)}`;
}
