// One operation with its whole story.
import { get as ask, operationLink, segment } from './client.js';
import { h } from './dom.js';
import { age, count, pill, stamp, time } from './format.js';
import { Exact, print } from './json.js';

export function storyView(id) {
  let story = null;
  return {
    title: id,
    id,
    drawn: false,
    get story() { return story; },
    async load(get = ask) { story = await get(`operations/${segment(id)}`); },
    missing() {
      return h('section', { class: 'empty' }, h('h1', {}, 'No such operation'), h('p', {}, 'There is no operation with the id ', h('code', {}, id), '.'),
        h('p', {}, 'Ids are compared exactly. ', h('a', { href: '#/operations' }, 'All operations')));
    },
    draw() {
      this.drawn = true;
      const { operation, intent, work } = story;
      return [
        head(operation, story),
        h('div', { class: 'columns', 'data-key': 'columns' },
          h('div', { 'data-key': 'left' }, facts(operation, intent, work), timeline(story)),
          h('div', { 'data-key': 'right' },
            block('Arguments', intent.pruned_at ? null : intent.arguments, intent.pruned_at ? `Pruned ${age(intent.pruned_at)}.` : 'As the planner wrote them; only text.'),
            operation.result_expired ? block('Result', null, 'The result was pruned; the id still replays.') : block('Result', operation.result, 'As the other side answered; only text.'),
            block('Error', operation.error ?? operation.last_error),
            operation.compensates ? block('Arguments of what it undoes', story.original_arguments) : null,
            operation.compensates ? block('Result of what it undoes', story.original_result) : null,
            requests(story.rendered))),
      ];
    },
  };
}

function head(operation, story) {
  return h('header', { class: 'story-head', 'data-key': 'head' },
    h('div', { class: 'line' }, pill(operation.status), operation.needs_attention ? pill('attention', `needs attention: ${operation.attention}`) : null,
      story.redacted ? h('span', { class: 'tag', title: 'redact: of the tool' }, 'parts are hidden') : null),
    h('h1', { class: 'id' }, operation.operation_id, h('button', { type: 'button', class: 'quiet', 'data-act': 'copy', 'data-text': operation.operation_id }, 'copy')),
    h('p', { class: 'message' }, operation.message),
    h('div', { class: 'actions', role: 'group', 'aria-label': 'Steer' }, buttons(operation, story)));
}

function buttons(operation, { compensations, work }) {
  const { status, attention } = operation;
  const final = ['succeeded', 'failed', 'cancelled'].includes(status);
  const button = (act, label, kind, more = {}) => h('button', { type: 'button', class: kind, 'data-act': act, 'data-id': operation.operation_id, 'data-key': `${act} ${label}`, ...more }, label);
  return [
    status === 'unknown' ? button('resolve', 'Resolve…', 'main', { 'data-epoch': operation.attempt_epoch, 'data-settled': work?.settled_at ?? '' }) : null,
    status === 'unknown' ? button('probe', 'Ask the other side now') : null,
    status === 'failed' ? button('retry', 'Retry…', 'main') : null,
    status === 'pending' || status === 'scheduled' ? button('cancel', 'Cancel…', 'danger') : null,
    final && attention ? button('acknowledge', 'Acknowledge…', 'main') : null,
    status !== 'failed' && status !== 'cancelled' && status !== 'pending' && status !== 'scheduled'
      ? compensations.map((name) => button('compensate', `Undo: ${name}…`, 'danger', { 'data-name': name })) : null,
  ];
}

function fact(name, value) {
  return value === null || value === undefined || value === '' ? null : [h('dt', {}, name), h('dd', {}, value)];
}

function facts(operation, intent, work) {
  const shown = (value) => (value instanceof Exact ? value.text : value);
  return h('section', { 'data-key': 'facts' }, h('h2', {}, 'Facts'), h('dl', {},
    fact('Tool', h('a', { href: `#/operations?${new URLSearchParams({ tool: operation.tool })}` }, operation.tool)),
    fact('Run', intent.run_id),
    fact('Undoes', operation.compensates ? h('a', { href: operationLink(operation.compensates) }, operation.compensates) : null),
    fact('Undone by', operation.compensated_by ? [h('a', { href: operationLink(operation.compensated_by) }, operation.compensated_by), ` (${operation.compensation_status})`] : null),
    fact('Created', time(operation.created_at)),
    fact('Not before', intent.run_at ? time(intent.run_at) : null),
    fact('Not after', intent.expires_at ? time(intent.expires_at) : null),
    fact('Attempts', `${count(operation.attempts)}${intent.max_attempts ? ` of ${intent.max_attempts}` : ''}`),
    fact('Attempt epoch', shown(operation.attempt_epoch)),
    fact('Priority', intent.priority === 0 ? null : shown(intent.priority)),
    fact('First attempt', operation.started_at ? time(operation.started_at) : null),
    fact('Ended', operation.finished_at ? time(operation.finished_at) : null),
    work ? [
      fact('Next look', operation.status === 'pending' ? null : work.due_at ? time(work.due_at) : null),
      fact('At work', work.leased_by_name ?? work.leased_by),
      fact('Deadline', work.deadline_at ? time(work.deadline_at) : null),
      fact('Unknown since', work.unknown_since ? time(work.unknown_since) : null),
      fact('Settled', operation.status === 'unknown' && work.settled_at ? time(work.settled_at) : null),
      fact('Look-ups', work.probes ? `${count(work.probes)}, ${count(work.absent_count)} of them absent in a row` : null),
      fact('In doubt', work.ambiguous ? 'an earlier attempt ended unknown' : null),
      fact('Accepted', work.accepted ? 'the other side took it and works on it' : null),
    ] : null,
    fact('Trace', intent.traceparent ? h('code', {}, intent.traceparent) : null),
    intent.labels && typeof intent.labels === 'object' ? Object.entries(intent.labels).map(([name, value]) => fact(`Label ${name}`, String(value))) : fact('Labels', intent.labels)));
}

const words = {
  replayed: 'asked for again: nothing was executed',
  retry: 'had no effect; again later',
  failed: 'failed, without effect',
  succeeded: 'succeeded',
  released: 'given back unsent',
  unknown: 'nobody knows whether it happened',
  lease_expired: 'its daemon went silent',
  probe: 'the other side was asked',
  attention: 'flagged for a person',
  resolved: 'a person gave the verdict',
  acknowledged: 'a person cleared the flag',
  cancelled: 'cancelled',
  retried: 'armed again',
  late_result: 'an answer came late',
  timeline: 'the database changed its timeline',
  result_lost: 'the result could not be kept',
};

function entry(key, at, kind, text, more = {}) {
  return h('li', { 'data-key': key, class: `event kind-${kind}` },
    h('span', { class: 'when' }, stamp(at)),
    h('span', { class: 'what' }, h('strong', {}, kind), text ? ` ${text}` : ''),
    more.who ? h('span', { class: 'dim' }, more.who) : null,
    more.detail && Object.keys(more.detail).length ? h('details', { open: more.open }, h('summary', {}, summary(more.detail)), h('pre', {}, print(more.detail))) : null);
}

function summary(detail) {
  if (typeof detail !== 'object') return 'detail';
  const parts = ['verdict', 'to', 'code', 'cause', 'attention', 'reason', 'message'].filter((name) => typeof detail[name] === 'string').map((name) => `${name}: ${detail[name]}`);
  const text = parts.join(' · ');
  return text ? (text.length > 160 ? `${text.slice(0, 160)}…` : text) : 'detail';
}

function timeline({ operation, events, more_events: more }) {
  const who = (event) => [event.actor, event.worker_name ?? event.worker?.slice(0, 8), event.epoch !== null ? `epoch ${event.epoch}` : null].filter(Boolean).join(' · ');
  return h('section', { 'data-key': 'timeline' }, h('h2', {}, 'What happened'), h('ol', { class: 'timeline' },
    entry('created', operation.created_at, 'created', 'recorded by the planner'),
    more ? h('li', { 'data-key': 'more', class: 'event dim' }, 'Earlier events are left out; outboxd events lists all of them.') : null,
    operation.started_at ? entry('started', operation.started_at, 'attempt', 'the first one began') : null,
    events.map((event) => entry(`e${event.id}`, event.at, event.kind, words[event.kind] ?? '', { who: who(event), detail: event.detail })),
    operation.finished_at ? entry('end', operation.finished_at, operation.status, 'the end, as it is recorded') : null));
}

function block(name, value, note) {
  if (value === null || value === undefined) return note && name !== 'Result' ? h('section', { 'data-key': name }, h('h2', {}, name), h('p', { class: 'dim' }, note)) : null;
  return h('section', { 'data-key': name }, h('h2', {}, name), h('pre', { tabindex: 0, 'aria-label': name }, print(value)), note ? h('p', { class: 'dim' }, note) : null);
}

function sent(name, request, note) {
  if (!request) return null;
  if (request.not_sent) return h('section', { 'data-key': name }, h('h2', {}, name), h('p', {}, `Nothing would be sent: ${request.not_sent.message}`));
  return h('section', { 'data-key': name }, h('h2', {}, name), h('pre', { tabindex: 0, 'aria-label': name }, wire(request)), h('p', { class: 'dim' }, note));
}

function wire(request) {
  if (request.type !== 'http') return print(request);
  let body = request.body ?? '';
  if (typeof body !== 'string') body = print(body);
  const headers = Object.entries(request.headers ?? {}).map(([key, value]) => (value?.name ? `${value.name}: ${value.value}` : `${key}: ${typeof value === 'string' ? value : print(value)}`));
  return [`${request.method} ${request.url}`, ...headers, '', body].join('\n').trimEnd();
}

function requests(rendered) {
  if (rendered?.problem) return h('section', { 'data-key': 'request' }, h('h2', {}, 'Request'), h('p', { class: 'dim' }, rendered.problem));
  return [
    sent('Request', rendered?.request, 'As the present configuration renders it, secrets masked.'),
    sent('Look-up', rendered?.lookup, 'How the other side is asked whether it happened.'),
  ];
}
