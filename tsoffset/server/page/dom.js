// Elements from values, and what is shown made like what is wanted: nodes stay where they can, so
// that focus, selection and scroll stay, too. Text is only ever set as text.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "oninput", "onchange", "onkeydown", "onsubmit"];

/** An element; `null`, `false` and `undefined` among attributes and children are ignored. */
export function h(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** An element of SVG. */
export function s(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  const { value, style, ...rest } = attributes ?? {};
  for (const [name, given] of Object.entries(rest)) {
    if (given === null || given === undefined || given === false) continue;
    if (HANDLERS.includes(name)) element[name] = given;
    else element.setAttribute(name, given === true ? "" : String(given));
  }
  // As properties: the page's policy lets no style stand in an attribute.
  for (const [name, given] of Object.entries(style ?? {})) element.style.setProperty(name, given);
  const wanted = children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false);
  element.append(...wanted);
  if (value !== undefined) element.value = value;
  return element;
}

/** Make the children of `from` like `wanted`, an array of nodes. */
export function show(from, ...wanted) {
  const to = from.cloneNode(false);
  to.append(...wanted.flat(Infinity).filter(Boolean));
  morphChildren(from, to);
}

function alike(one, other) {
  return one.nodeName === other.nodeName && keyOf(one) === keyOf(other);
}

function keyOf(node) {
  return node.dataset?.key;
}

function morph(from, to) {
  if (from.nodeType === Node.TEXT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  // What is in an island is drawn by whoever made it.
  if (from.dataset?.island !== undefined) return;
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !left(from, name)) from.removeAttribute(name);
  }
  for (const { name, value } of to.attributes) {
    if (!left(from, name) && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const name of HANDLERS) from[name] = to[name];
  if (from.style.cssText !== to.style.cssText) from.style.cssText = to.style.cssText;
  morphChildren(from, to);
  const typing = from === document.activeElement && from.nodeName === "INPUT";
  if ("value" in from && !typing && from.value !== to.value) from.value = to.value;
}

/** What a reader has opened stays open; styles are set as properties. */
function left(element, name) {
  return name === "style" || (name === "open" && element.nodeName === "DETAILS");
}

function morphChildren(from, to) {
  const keyed = new Map();
  for (const child of from.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  const wantedKeys = new Set([...to.childNodes].map(keyOf));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    while (at && keyOf(at) && !wantedKeys.has(keyOf(at))) at = dropped(at);
    const key = keyOf(wanted);
    const match = key ? keyed.get(key) : at && !keyOf(at) && alike(at, wanted) ? at : null;
    if (match && alike(match, wanted)) {
      if (match === at) at = at.nextSibling;
      else from.insertBefore(match, at);
      morph(match, wanted);
    } else {
      from.insertBefore(wanted, at);
    }
  }
  while (at) at = dropped(at);
}

function dropped(node) {
  const next = node.nextSibling;
  node.remove();
  return next;
}
