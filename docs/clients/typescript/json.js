// JSON as the outbox wants it: exact numbers, and nothing that Postgres or a key would choke on.
// Refused with the place, before anything is sent: an error of the server would abort the caller's
// transaction. JSON.stringify would turn NaN into null and a Date into a new text at every retry.

export function encode(value, path = 'arguments') {
  switch (typeof value) {
    case 'boolean': return String(value);
    case 'bigint': return String(value);
    case 'string': return text(value, path);
    case 'number':
      if (!Number.isFinite(value)) throw new TypeError(`${path} is ${value}: JSON has no such number`);
      return JSON.stringify(value);
    case 'object': break;
    default: throw new TypeError(`${path} is of type ${typeof value}: pass string, number, bigint, boolean, null, array or object`);
  }
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${Array.from(value, (item, i) => encode(item, `${path}[${i}]`)).join(',')}]`;
  if (value instanceof Date) {
    throw new TypeError(`${path} is a Date: pass text. Fix it when the step is decided; `
      + 'a time taken anew at every retry makes every retry a new action');
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== null && Object.getPrototypeOf(prototype) !== null) {
    throw new TypeError(`${path} is a ${value.constructor?.name}: pass a plain object`);
  }
  const members = Object.entries(value).filter(([, member]) => member !== undefined);  // absent, as in JSON
  return `{${members.map(([key, member]) => `${text(key, path)}:${encode(member, `${path}.${key}`)}`).join(',')}}`;
}

function text(value, path) {
  if (value.includes('\0')) throw new TypeError(`${path} contains a NUL character, which Postgres cannot store`);
  if (/\p{Surrogate}/u.test(value)) throw new TypeError(`${path} contains half of a surrogate pair, which is no character`);
  return JSON.stringify(value);
}

export function encodeObject(value, name) {
  if (value === undefined || value === null) return '{}';
  if (typeof value !== 'object' || Array.isArray(value)) throw new TypeError(`${name} must be an object of names and values`);
  return encode(value, name);
}
