// The frame around the three views: which one the address names, polling, keys, and the token.
import { actions, askToken, showHelp } from './actions.js';
import { get, source, sources, token } from './client.js';
import { h, render } from './dom.js';
import { listView } from './list.js';
import { overviewView } from './overview.js';
import { storyView } from './story.js';

const fast = 2000;    // between two looks
const slowest = 30_000;  // after failures

const main = document.getElementById('main');
const live = document.getElementById('live');
const banner = document.getElementById('banner');

let view = null;
let timer = null;
let looking = null;   // AbortController of the request under way
let failures = 0;
let asked = false;    // for the token, once: a wrong one is said, not asked for again and again

// #/operations?status=unknown → {name, id, query}. Ids are percent-encoded, so they may hold anything.
function route() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const [name, id] = path.split('/');
  const options = new URLSearchParams(query);
  if (name === 'operation' && id) {
    try { return { name, id: decodeURIComponent(id), options }; } catch { /* no id: the overview */ }
  }
  return { name: name === 'operations' ? name : 'overview', options };
}

function open() {
  const where = route();
  view = where.name === 'operation' ? storyView(where.id) : where.name === 'operations' ? listView(where.options) : overviewView();
  for (const link of document.querySelectorAll('[data-nav]')) {
    const current = link.dataset.nav === where.name || (where.name === 'operation' && link.dataset.nav === 'operations');
    if (current) link.setAttribute('aria-current', 'page'); else link.removeAttribute('aria-current');
  }
  document.title = `${view.title} · outboxd`;
  render(main, h('p', { class: 'notice', 'data-key': 'loading' }, 'Loading…'));
  main.scrollIntoView?.({ block: 'nearest' });
  window.scrollTo(0, 0);
  failures = 0;
  look();
}

function say(state, text) {
  live.dataset.state = state;
  live.textContent = text;
}

// Several databases: each is a page of its own, in the address, so that a link says which one it means.
// Equal ids are different operations there, so nothing is taken along but the view.
function goTo(name) {
  const { name: shown } = route();
  location.assign(`/?source=${encodeURIComponent(name)}${shown === 'operations' ? '#/operations' : '#/'}`);
}

let named = false;  // the databases are known

async function showSources() {
  if (named) return true;
  const names = await sources();
  named = true;
  const choice = document.getElementById('source');
  choice.hidden = names.length < 2;
  if (choice.hidden) return true;
  const known = names.includes(source);
  render(choice, ...(known ? [] : [h('option', { value: '' }, source === null ? 'Choose a database' : `${source}: not served here`)]),
    ...names.map((name) => h('option', { value: name }, name)));
  choice.value = known ? source : '';
  if (source !== null) return true;
  goTo(names[0]);
  return false;
}

async function look() {
  clearTimeout(timer);
  looking?.abort();
  if (document.hidden) return say('paused', 'paused');
  const mine = view;
  const request = new AbortController();
  looking = request;
  try {
    if (!await showSources()) return;
    await mine.load((path) => get(path, request.signal));
    if (mine !== view || request !== looking) return;
    failures = 0;
    asked = false;
    render(banner);
    render(main, mine.draw());
    say('live', 'live');
  } catch (error) {
    if (error.name === 'AbortError' || mine !== view || request !== looking) return;
    failed(error);
  }
  const wait = Math.min(fast * 2 ** Math.min(failures, 4), slowest);
  timer = setTimeout(look, wait);
}

function failed(error) {
  if (error.status === undefined) console.error(error);  // a mistake of ours: seen in tests
  failures += 1;
  if (error.status === 401) {
    say('stopped', 'signed out');
    const wrong = token.get() !== '';
    render(banner, h('div', { class: 'problem' }, wrong ? 'This token is not the right one.' : 'Reading needs the token.',
      h('button', { type: 'button', 'data-act': 'token' }, 'Sign in')));
    if (!view.drawn) render(main);
    if (!asked) { asked = true; signIn(wrong ? error.message : ''); }
    return;
  }
  if (error.status === 404 && view.missing) {
    say('live', 'live');
    render(banner);
    render(main, view.missing());
    return;
  }
  say('stopped', `retrying in ${Math.min(fast * 2 ** Math.min(failures, 4), slowest) / 1000} s`);
  render(banner, h('div', { class: 'problem' }, h('span', {}, error.message, error.hint ? ` ${error.hint}` : ''),
    view.drawn ? h('span', { class: 'dim' }, 'What is shown is what it was before.') : null,
    h('button', { type: 'button', 'data-act': 'again' }, 'Try now')));
  if (!view.drawn) render(main);
}

function showToken() {
  const button = document.getElementById('token-button');
  button.textContent = token.get() ? 'Sign out' : 'Sign in';
}

async function signIn(problem) {
  if (await askToken(problem)) { showToken(); look(); }
}

// --- what may be clicked ------------------------------------------------------------------------
document.addEventListener('click', async (event) => {
  const target = event.target.closest('[data-act]');
  if (!target) return;
  const { act } = target.dataset;
  if (act === 'token' && token.get()) {
    token.set('');
    asked = true;
    showToken();
    open();
  } else if (act === 'token') {
    signIn('');
  } else if (act === 'help') {
    showHelp();
  } else if (act === 'again') {
    look();
  } else if (act === 'copy') {
    try { await navigator.clipboard.writeText(target.dataset.text); target.textContent = 'copied'; } catch { target.textContent = 'not allowed'; }
  } else if (act === 'go') {
    // A row opens its operation, unless somebody marks text in it or uses the link itself.
    if (event.target.closest('a') || getSelection().toString()) return;
    location.hash = target.dataset.to;
  } else if (actions[act]) {
    if (await actions[act](target.dataset, view)) look();
    showToken();
  } else if (view.act) {
    view.act(act, target.dataset);
  }
});

document.addEventListener('change', (event) => {
  if (event.target.id === 'source' && event.target.value) return goTo(event.target.value);
  const target = event.target.closest('[data-change]');
  if (target && view.act) view.act(target.dataset.change, { value: target.value });
});

document.getElementById('search').addEventListener('submit', (event) => {
  event.preventDefault();
  const input = document.getElementById('search-id');
  if (input.value === '') return;
  location.hash = `#/operation/${encodeURIComponent(input.value)}`;
  input.value = '';
  input.blur();
});

// --- keys ---------------------------------------------------------------------------------------
const rows = () => [...main.querySelectorAll('[data-row]')];

function step(by) {
  const all = rows();
  if (all.length === 0) return;
  const at = all.indexOf(document.activeElement.closest?.('[data-row]'));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
  next.focus();
  next.scrollIntoView({ block: 'nearest' });
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
  const typing = event.target.closest('input, textarea, select');
  if (event.key === 'Escape') {
    if (typing) typing.blur();
    else if (route().name === 'operation') history.length > 1 ? history.back() : (location.hash = '#/operations');
    return;
  }
  if (typing) return;
  const keys = {
    '/': () => document.getElementById('search-id').focus(),
    j: () => step(1),
    k: () => step(-1),
    ArrowDown: () => step(1),
    ArrowUp: () => step(-1),
    g: () => { location.hash = '#/'; },
    o: () => { location.hash = '#/operations'; },
    '?': showHelp,
    Enter: () => event.target.querySelector('a').click(),
    n: () => main.querySelector('[data-act="older"]')?.click(),
    p: () => main.querySelector('[data-act="newer"]')?.click(),
  };
  if (!keys[event.key] || (event.key.startsWith('Arrow') && rows().length === 0)) return;
  if (event.key === 'Enter' && !event.target.matches('[data-row]')) return;
  event.preventDefault();
  keys[event.key]();
});

window.addEventListener('hashchange', open);
document.addEventListener('visibilitychange', look);
showToken();
open();
