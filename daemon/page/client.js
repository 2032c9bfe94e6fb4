// The API: the token, errors that say what to do, and nothing else.
import { parse, print } from './json.js';

const slot = 'outboxd.token';
// Of a daemon with several databases: the page's own ?source=NAME.
export const source = new URLSearchParams(location.search).get('source');
const sourced = (path) => (source === null || path === 'sources' ? path : `${path}${path.includes('?') ? '&' : '?'}source=${encodeURIComponent(source)}`);

export const token = {
  get: () => sessionStorage.getItem(slot) ?? '',
  set: (text) => { if (text) sessionStorage.setItem(slot, text); else sessionStorage.removeItem(slot); },
};

export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || `The server answered ${status}.`);
    this.status = status;
    this.hint = [body.reason, body.hint].filter(Boolean).join(' ');
    this.answer = body.answer;
    this.pointer = body.pointer;
  }
}

// The databases that this daemon serves. The others' rows are not asked for, so no token is needed twice.
export const sources = async () => (await get('sources')).items.map((item) => item.name);

async function ask(method, path, body, signal) {
  let response;
  let text;
  try {
    response = await fetch(`/api/v1/${sourced(path)}`, {
      method,
      signal: AbortSignal.any ? AbortSignal.any([AbortSignal.timeout(15_000), ...(signal ? [signal] : [])]) : signal,
      headers: {
        ...(token.get() && { Authorization: `Bearer ${token.get()}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      body: body === undefined ? undefined : print(body),
    });
    text = await response.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem(0, { detail: 'The daemon cannot be reached.' });
  }
  let answer = {};
  try { answer = parse(text); } catch { /* an answer of something between us and the daemon */ }
  if (!response.ok) throw new Problem(response.status, answer);
  return answer;
}

export const get = (path, signal) => ask('GET', path, undefined, signal);
export const post = (path, body) => ask('POST', path, body);
export const segment = (text) => encodeURIComponent(text);
export const operationLink = (id) => `#/operation/${segment(id)}`;
