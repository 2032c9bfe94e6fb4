// Operations, newest first: filters, a page at a time.
import { operationLink } from './client.js';
import { h } from './dom.js';
import { pill, shape, statuses, time } from './format.js';

const page = 50;

export function listView(options) {
  const chosen = new Set((options.get('status') ?? '').split(',').filter((status) => statuses.includes(status)));
  const tool = options.get('tool') ?? '';
  const attention = options.get('attention') === 'true';
  const after = /^\d+$/.test(options.get('after') ?? '') ? options.get('after') : '';
  let items = [];
  let next = null;
  let names = [];

  // The address is the state: what is chosen can be sent to somebody, and Back goes back.
  const go = (changes) => {
    const state = { status: [...chosen].join(','), tool, attention: attention ? 'true' : '', ...changes };
    const query = new URLSearchParams(Object.entries(state).filter(([, value]) => value));
    location.hash = `#/operations${query.size ? `?${query}` : ''}`;
  };

  return {
    title: 'Operations',
    drawn: false,
    async load(get) {
      const query = new URLSearchParams({ limit: page });
      if (chosen.size) query.set('status', [...chosen].join(','));
      if (tool) query.set('tool', tool);
      if (attention) query.set('attention', 'true');
      if (after) query.set('after', after);
      const [list, catalogue] = await Promise.all([get(`operations?${query}`), get('tools')]);
      ({ items, next } = list);
      names = [...new Set([...catalogue.items.map((row) => row.tool), ...(tool ? [tool] : [])])].sort();
    },
    act(name, data) {
      if (name === 'status') {
        const status = new Set(chosen);
        if (!status.delete(data.value)) status.add(data.value);
        go({ status: [...status].join(',') });
      } else if (name === 'tool') {
        go({ tool: data.value });
      } else if (name === 'attention') {
        go({ attention: attention ? '' : 'true' });
      } else if (name === 'older') {
        go({ after: next });
      } else if (name === 'newer') {
        history.back();
      } else if (name === 'newest' || name === 'clear') {
        go(name === 'clear' ? { status: '', tool: '', attention: '' } : {});
      }
    },
    draw() {
      this.drawn = true;
      const filtered = chosen.size > 0 || tool || attention;
      return [
        h('h1', { class: 'hidden' }, 'Operations'),
        h('section', { class: 'filters', 'aria-label': 'Filters', 'data-key': 'filters' },
          statuses.map((status) => h('button', { type: 'button', class: `chip is-${status}`, 'data-act': 'status', 'data-value': status, 'data-key': status, 'aria-pressed': chosen.has(status) ? 'true' : 'false' }, shape(status), status)),
          h('button', { type: 'button', class: 'chip is-attention', 'data-act': 'attention', 'data-key': 'attention', 'aria-pressed': attention ? 'true' : 'false' }, shape('attention'), 'needs attention'),
          h('label', { class: 'field', 'data-key': 'tool' }, h('span', { class: 'hidden' }, 'Tool'),
            h('select', { 'data-change': 'tool' }, h('option', { value: '' }, 'All tools'), names.map((name) => h('option', { value: name, selected: name === tool }, name)))),
          filtered ? h('button', { type: 'button', class: 'quiet', 'data-act': 'clear', 'data-key': 'clear' }, 'Clear') : null),
        items.length === 0 ? empty(filtered, after) : table(items),
        h('nav', { class: 'pager', 'aria-label': 'Pages of the list', 'data-key': 'pager' },
          after ? h('button', { type: 'button', 'data-act': 'newest', 'data-key': 'newest' }, 'Newest') : null,
          after ? h('button', { type: 'button', 'data-act': 'newer', 'data-key': 'newer' }, 'Newer') : null,
          next ? h('button', { type: 'button', 'data-act': 'older', 'data-key': 'older' }, 'Older') : h('span', { class: 'dim', 'data-key': 'end' }, items.length ? 'That is all.' : '')),
      ];
    },
  };
}

function empty(filtered, after) {
  return h('section', { class: 'empty', 'data-key': 'empty' }, h('h2', {}, after ? 'No more operations' : filtered ? 'Nothing matches' : 'No operations yet'),
    h('p', {}, filtered ? 'No operation is in this state at this moment.' : 'A planner writes one with outbox.enqueue, or you: outboxd enqueue TOOL --operation-id ID.'));
}

function table(items) {
  return h('div', { class: 'scroll', 'data-key': 'rows' }, h('table', { class: 'stack list' },
    h('thead', {}, h('tr', {}, ['State', 'Operation', 'Tool'].map((name) => h('th', { scope: 'col' }, name)), h('th', { scope: 'col', class: 'num' }, 'Attempts'),
      ['Created', 'Next or ended', 'What is the matter'].map((name) => h('th', { scope: 'col' }, name)))),
    h('tbody', {}, items.map((row) => h('tr', { 'data-key': row.operation_id, 'data-row': true, 'data-act': 'go', 'data-to': operationLink(row.operation_id), tabindex: -1 },
      h('td', {}, pill(row.status)),
      h('th', { scope: 'row', class: 'id' }, h('a', { href: operationLink(row.operation_id) }, row.operation_id)),
      h('td', { 'data-label': 'tool' }, row.tool),
      h('td', { class: 'num', 'data-label': 'attempts' }, row.attempts),
      h('td', { 'data-label': 'created' }, time(row.created_at)),
      h('td', { 'data-label': row.finished_at ? 'ended' : 'next' }, row.finished_at ? time(row.finished_at) : row.due_at ? time(row.due_at) : '–'),
      h('td', { class: 'why', 'data-label': '' }, row.needs_attention ? pill('attention', row.attention) : null,
        row.compensated_by ? h('span', { class: 'tag' }, 'undone by ', row.compensated_by) : null,
        row.error_code ? [h('span', { class: 'mono' }, row.error_code), row.error_message ? ` ${row.error_message}` : ''] : null))))));
}
