// Names and sentences may hold anything. What cannot be seen, or would turn the text around it, is
// shown as an escape; all else as it is, set apart from the direction of what surrounds it.

import { h } from "./dom.js";

const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{DI}]|(?! )\p{Zs}|^ | $/gu;

function escape(character) {
  return `\\u{${character.codePointAt(0).toString(16)}}`;
}

/** The text with escapes, for where there are no elements (labels, titles). */
export function plain(text) {
  return text.replace(UNSEEN, escape);
}

/** A name or a sentence as an element. */
export function shown(text, attributes) {
  if (text === "") return h("em", attributes, "(no name)");
  const parts = [];
  let end = 0;
  for (const { 0: found, index } of text.matchAll(UNSEEN)) {
    parts.push(text.slice(end, index), h("span", { class: "escape" }, escape(found)));
    end = index + found.length;
  }
  return h("bdi", attributes, ...parts, text.slice(end));
}

/** A flow's name, `A->B`, with an arrow that is read as a word. */
export function flowName(flow) {
  const arrow = h("span", { class: "arrow", role: "img", "aria-label": "to" }, "→");
  return [shown(flow.source), arrow, shown(flow.target)];
}

/** A name as a part of a path or query. */
export function encoded(text) {
  return encodeURIComponent(text.toWellFormed());
}
