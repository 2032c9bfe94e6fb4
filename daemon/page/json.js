// JSON whose numbers keep their digits: arguments may hold 9007199254740993 or 20.0, which no
// JavaScript number can show. A number that would change is kept as an Exact.
export class Exact {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
}

export function parse(text) {
  let at = 0;
  const fail = () => { throw new SyntaxError(`no JSON at ${at}`); };
  const space = () => { while (at < text.length && ' \t\n\r'.includes(text[at])) at += 1; };
  const expect = (token) => { if (text.startsWith(token, at)) at += token.length; else fail(); };

  function string() {
    const start = at;
    at += 1;
    while (text[at] !== '"') {
      if (at >= text.length) fail();
      at += text[at] === '\\' ? 2 : 1;
    }
    at += 1;
    return JSON.parse(text.slice(start, at));
  }

  function number() {
    const [digits] = /^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?/.exec(text.slice(at, at + 2000)) ?? fail();
    at += digits.length;
    const value = Number(digits);
    return String(value) === digits ? value : new Exact(digits);
  }

  function list(close, item) {
    at += 1;
    space();
    if (text[at] === close) { at += 1; return; }
    for (;;) {
      item();
      space();
      if (text[at] === close) { at += 1; return; }
      expect(',');
    }
  }

  function value() {
    space();
    switch (text[at]) {
      case '{': {
        const object = Object.create(null);
        list('}', () => { space(); const key = string(); space(); expect(':'); object[key] = value(); });
        return object;
      }
      case '[': {
        const array = [];
        list(']', () => array.push(value()));
        return array;
      }
      case '"': return string();
      case 't': expect('true'); return true;
      case 'f': expect('false'); return false;
      case 'n': expect('null'); return null;
      default: return number();
    }
  }

  const result = value();
  space();
  if (at !== text.length) fail();
  return result;
}

export function print(value, indent = '') {
  if (value instanceof Exact) return value.text;
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const deeper = `${indent}  `;
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[\n${value.map((item) => deeper + print(item, deeper)).join(',\n')}\n${indent}]`;
  }
  const keys = Object.keys(value);
  if (keys.length === 0) return '{}';
  return `{\n${keys.map((key) => `${deeper}${JSON.stringify(key)}: ${print(value[key], deeper)}`).join(',\n')}\n${indent}}`;
}
