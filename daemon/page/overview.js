// What is going on: what waits for a person first, then each tool, then the daemons.
import { h } from './dom.js';
import { count, interval, pill, seconds, share, shape, time } from './format.js';

const open = ['unknown', 'attempting', 'pending', 'scheduled'];
const listOf = (options) => `#/operations?${new URLSearchParams(options)}`;

export function overviewView() {
  let tools = [];
  let totals = {};
  let workers = [];

  return {
    title: 'Overview',
    drawn: false,
    async load(get) {
      const [stats, catalogue, running] = await Promise.all([get('stats'), get('tools'), get('workers')]);
      tools = combined(stats, catalogue.items);
      totals = summed(tools);
      workers = running.items.filter((worker) => !worker.stopped_at).slice(0, 50);
    },
    draw() {
      this.drawn = true;
      return [h('h1', { class: 'hidden' }, 'Overview'), cards(totals), toolTable(tools), workerTable(workers)];
    },
  };
}

function combined(stats, catalogue) {
  const byName = new Map();
  const of = (name) => {
    if (!byName.has(name)) byName.set(name, { name, open: {}, ages: {}, attention: 0, hours: [], known: false });
    return byName.get(name);
  };
  for (const tool of catalogue) Object.assign(of(tool.tool), { known: true, effect: tool.effect, description: tool.description, paused: tool.paused_at, reason: tool.paused_reason });
  for (const row of stats.items) {
    const tool = of(row.tool);
    if (row.status) {
      tool.open[row.status] = Number(row.count);
      tool.ages[row.status] = interval(row.oldest_age);
    } else {
      Object.assign(tool, { sums: row });
    }
  }
  for (const row of stats.attention) of(row.tool).attention += Number(row.count);
  for (const row of stats.hours) of(row.tool).hours.push({ at: Date.parse(row.at), enqueued: Number(row.enqueued), replayed: Number(row.replayed) });
  const weight = (tool) => [tool.attention, tool.open.unknown ?? 0];
  return [...byName.values()].sort((a, b) => {
    const [aa, au] = weight(a);
    const [ba, bu] = weight(b);
    return ba - aa || bu - au || a.name.localeCompare(b.name);
  });
}

function summed(tools) {
  const sum = (value) => tools.reduce((total, tool) => total + (value(tool) ?? 0), 0);
  const oldest = (status) => Math.max(...tools.map((tool) => tool.ages[status] ?? -1));
  const enqueued = sum((tool) => Number(tool.sums?.enqueued_30d ?? 0));
  const replayed = sum((tool) => Number(tool.sums?.replayed_30d ?? 0));
  return {
    attention: sum((tool) => tool.attention),
    unknown: sum((tool) => tool.open.unknown),
    unknownAge: oldest('unknown'),
    backlog: sum((tool) => (tool.open.pending ?? 0) + (tool.open.scheduled ?? 0)),
    pendingAge: oldest('pending'),
    attempting: sum((tool) => tool.open.attempting),
    enqueued: sum((tool) => Number(tool.sums?.enqueued_1h ?? 0)),
    replay: enqueued + replayed > 0 ? replayed / (enqueued + replayed) : null,
  };
}

function card(name, label, value, note, href, loud) {
  return h('a', { class: `card${loud ? ` loud is-${name}` : ''}`, href, 'data-key': name },
    h('span', { class: 'card-label' }, shape(name), label), h('strong', {}, value), h('span', { class: 'dim' }, note));
}

function cards(totals) {
  return h('section', { class: 'cards', 'aria-label': 'In short', 'data-key': 'cards' },
    card('attention', 'Needs attention', count(totals.attention), totals.attention ? 'a person must look' : 'nothing waits for a person', listOf({ attention: 'true' }), totals.attention > 0),
    card('unknown', 'Unknown', count(totals.unknown), totals.unknownAge >= 0 ? `oldest ${seconds(totals.unknownAge)}` : 'nothing in doubt', listOf({ status: 'unknown' }), totals.unknown > 0),
    card('attempting', 'Under way', count(totals.attempting), 'being attempted now', listOf({ status: 'attempting' })),
    card('pending', 'Waiting', count(totals.backlog), totals.pendingAge >= 0 ? `oldest pending ${seconds(totals.pendingAge)}` : totals.backlog ? 'all of it for later' : 'no backlog', listOf({ status: 'pending,scheduled' })),
    card('succeeded', 'Replays, 30 days', share(totals.replay), `${count(totals.enqueued)} enqueued in the last hour`, '#/operations'));
}

const width = 96;
const height = 22;

// 24 bars, one an hour, the present one last; what was a replay is the darker part below.
function sparkline(tool) {
  const hour = 3_600_000;
  const first = Math.floor(Date.now() / hour) * hour - 23 * hour;
  const bars = Array.from({ length: 24 }, () => ({ enqueued: 0, replayed: 0 }));
  for (const { at, enqueued, replayed } of tool.hours) {
    const bar = bars[Math.round((at - first) / hour)];
    if (bar) { bar.enqueued += enqueued; bar.replayed += replayed; }
  }
  const most = Math.max(1, ...bars.map((bar) => bar.enqueued + bar.replayed));
  const total = bars.reduce((sum, bar) => sum + bar.enqueued, 0);
  const replays = bars.reduce((sum, bar) => sum + bar.replayed, 0);
  const label = `Last 24 hours: ${count(total)} enqueued, ${count(replays)} replayed`;
  return h('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img', 'aria-label': label },
    h('svg:title', {}, label),
    h('line', { x1: 0, x2: width, y1: height - 0.5, y2: height - 0.5, class: 'base' }),
    bars.map((bar, i) => {
      const all = (bar.enqueued + bar.replayed) / most * (height - 2);
      const again = bar.replayed / most * (height - 2);
      const tall = bar.enqueued + bar.replayed > 0 ? Math.max(1.5, all) : 0;
      return [tall > 0 && h('rect', { x: i * 4 + 0.5, y: height - 1 - tall, width: 3, height: tall, class: 'bar-enqueued' }),
        again > 0 && h('rect', { x: i * 4 + 0.5, y: height - 1 - again, width: 3, height: again, class: 'bar-replayed' })];
    }));
}

function number(tool, status) {
  const value = tool.open[status] ?? 0;
  const age = tool.ages[status];
  if (value === 0) return h('td', { class: 'num zero', 'data-label': status }, '0');
  return h('td', { class: `num${status === 'unknown' ? ' is-unknown' : ''}`, 'data-label': status },
    h('a', { href: listOf({ tool: tool.name, status }) }, count(value)),
    age !== null && age !== undefined && ['unknown', 'pending'].includes(status) ? h('small', {}, seconds(age)) : null);
}

function toolRow(tool) {
  const pause = tool.paused ? ['resume', 'Resume'] : ['pause', 'Pause'];
  return h('tr', { 'data-key': tool.name, 'data-row': true, tabindex: -1 },
    h('th', { scope: 'row' }, h('a', { href: listOf({ tool: tool.name }), class: 'name' }, tool.name),
      tool.paused ? h('span', { class: 'tag warn', title: tool.reason }, 'paused') : null,
      tool.known ? null : h('span', { class: 'tag warn', title: 'No daemon has published this tool' }, 'not in the catalogue'),
      tool.effect === 'read' ? h('span', { class: 'tag' }, 'read') : null,
      tool.paused ? h('small', {}, tool.reason) : null),
    h('td', { class: `num${tool.attention ? ' is-attention' : ' zero'}`, 'data-label': 'attention' },
      tool.attention ? h('a', { href: listOf({ tool: tool.name, attention: 'true' }) }, shape('attention'), count(tool.attention)) : '0'),
    open.map((status) => number(tool, status)),
    h('td', { class: 'num', 'data-label': 'last hour' }, count(tool.sums?.enqueued_1h)),
    h('td', { class: 'num', 'data-label': 'replays 1 h' }, share(tool.sums?.replay_rate_1h)),
    h('td', { class: 'num', 'data-label': 'replays 30 d' }, share(tool.sums?.replay_rate_30d)),
    h('td', { 'data-label': '24 hours' }, sparkline(tool)),
    h('td', { class: 'end' }, tool.known ? h('button', { type: 'button', 'data-act': pause[0], 'data-tool': tool.name }, pause[1]) : null));
}

function toolTable(tools) {
  if (tools.length === 0) {
    return h('section', { class: 'empty', 'data-key': 'tools' }, h('h2', {}, 'No tools yet'),
      h('p', {}, 'A daemon publishes its tools when it starts: outboxd run -c outboxd.yaml.'));
  }
  return h('section', { 'data-key': 'tools' }, h('h2', {}, 'Tools'), h('div', { class: 'scroll' }, h('table', { class: 'stack' },
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Tool'),
      ['Attention', 'Unknown', 'Attempting', 'Pending', 'Scheduled', 'Last hour', 'Replays 1 h', 'Replays 30 d'].map((name) => h('th', { scope: 'col', class: 'num' }, name)),
      h('th', { scope: 'col' }, '24 hours'), h('th', {}, h('span', { class: 'hidden' }, 'Steer')))),
    h('tbody', {}, tools.map(toolRow)))));
}

function workerTable(workers) {
  return h('section', { 'data-key': 'workers' }, h('h2', {}, 'Daemons'),
    workers.length === 0 ? h('p', { class: 'empty' }, 'No daemon has reported to this database.')
      : h('div', { class: 'scroll' }, h('table', { class: 'stack' },
        h('thead', {}, h('tr', {}, ['Name', 'State', 'Version', 'Tools', 'Started', 'Last heartbeat'].map((name) => h('th', { scope: 'col' }, name)))),
        h('tbody', {}, workers.map((worker) => h('tr', { 'data-key': worker.worker },
          h('th', { scope: 'row' }, worker.name, h('small', { class: 'mono' }, worker.worker.slice(0, 8))),
          h('td', { 'data-label': 'state' }, worker.alive ? pill('succeeded', 'alive') : pill('failed', 'silent')),
          h('td', { 'data-label': 'version' }, worker.version),
          h('td', { 'data-label': 'tools' }, count(worker.tools.length)),
          h('td', { 'data-label': 'started' }, time(worker.started_at)),
          h('td', { 'data-label': 'heartbeat' }, time(worker.heartbeat_at))))))));
}
