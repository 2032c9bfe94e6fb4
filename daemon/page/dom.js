// Elements without markup: everything that comes from outside becomes a text node or an attribute,
// never HTML. render() changes what differs and leaves the rest, so focus, scroll position and what
// is folded open survive a poll.
const svgTags = new Set(['svg', 'path', 'circle', 'rect', 'polyline', 'line', 'title']);

export function h(tag, attributes, ...children) {
  const svg = svgTags.has(tag) && tag !== 'title' || tag === 'svg:title';
  const element = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag.replace('svg:', '')) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export function render(container, ...children) {
  const fresh = container.cloneNode(false);
  for (const child of children.flat(Infinity)) if (child) fresh.append(child);
  reconcile(container, fresh);
}

const key = (node) => (node.nodeType === 1 ? node.getAttribute('data-key') : null);
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && key(a) === key(b);

function reconcile(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) if (key(child) !== null) keyed.set(key(child), child);
  let at = old.firstChild;
  for (const wanted of [...fresh.childNodes]) {
    const known = key(wanted) !== null ? keyed.get(key(wanted)) : null;
    if (known && known !== at && alike(known, wanted)) {
      old.insertBefore(known, at);
      update(known, wanted);
    } else if (at && alike(at, wanted)) {
      update(at, wanted);
      at = at.nextSibling;
    } else {
      old.insertBefore(wanted, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

function update(old, fresh) {
  if (old.nodeType !== 1) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    const users = name === 'open' && old.nodeName === 'DETAILS';  // what a person folded open
    if (!fresh.hasAttribute(name) && !users) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  if (old.nodeName === 'SELECT') {
    reconcile(old, fresh);
    if (document.activeElement !== old) old.value = fresh.value;
    return;
  }
  if (old.nodeName !== 'INPUT' && old.nodeName !== 'TEXTAREA') reconcile(old, fresh);
}
