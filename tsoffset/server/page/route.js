// What is shown is in the address: #flow, #flow/group, and behind `?` how the list is asked for.

import { encoded } from "./names.js";

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** `{flow, group, query}`; flow and group are null where none is meant. */
export function route() {
  const hash = location.hash.slice(1);
  const at = hash.includes("?") ? hash.indexOf("?") : hash.length;
  const [flow, group = null] = hash.slice(0, at).split("/").map(decoded);
  return { flow: flow || null, group, query: new URLSearchParams(hash.slice(at + 1)) };
}

/** The address of a route. */
export function address({ flow, group = null, query = new URLSearchParams() }) {
  const asked = String(query);
  const path = flow === null ? "" : encoded(flow) + (group === null ? "" : `/${encoded(group)}`);
  return `#${path}${asked ? `?${asked}` : ""}`;
}

/** The address of the same flow with other parameters; null removes one. The new list begins at its
 * first page. */
export function changed(here, changes) {
  const query = new URLSearchParams(here.query);
  for (const [name, value] of Object.entries({ page: null, ...changes })) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  return address({ flow: here.flow, query });
}
