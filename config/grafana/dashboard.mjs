// Writes outboxd.json beside this file: the dashboard for Grafana, import it as it is.
//   node config/grafana/dashboard.mjs
// Counters belong to the daemon that counted, so they are summed; gauges that are sampled from the
// database are the same in all daemons, so the largest is taken.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const source = { type: 'prometheus', uid: '${DS_PROMETHEUS}' };
const here = 'job=~"$job", instance=~"$instance"';
const of = (name, ...labels) => `outboxd_${name}{${[here, ...labels].join(', ')}}`;
const tool = 'tool=~"$tool"';
const rate = (name, ...labels) => `rate(${of(name, ...labels)}[$__rate_interval])`;
const gain = (name, ...labels) => `increase(${of(name, ...labels)}[$__range])`;
const by = (labels, what) => `sum by (${labels}) (${what})`;
const top = (labels, what) => `max by (${labels}) (${what})`;
const share = (q, name, labels, ...match) => `histogram_quantile(${q}, ${by([...labels, 'le'].join(', '), rate(`${name}_bucket`, ...match))})`;
const status = (value) => `status="${value}"`;

const red = (above) => ({ mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'red', value: above }] });
const orange = (above, worse) => ({ mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'orange', value: above }, { color: 'red', value: worse }] });

// A query is an expression and, for the legend, a template of labels.
const target = ([expr, legend = ''], i) => ({ refId: String.fromCharCode(65 + i), datasource: source, expr, legendFormat: legend, editorMode: 'code', range: true });
const panel = (type, title, description, queries, { unit = 'short', width, height, thresholds, decimals, min, ...options } = {}) => ({
  type, title, description, datasource: source, width, height, targets: queries.map(target),
  fieldConfig: { defaults: { unit, ...(decimals !== undefined && { decimals }), ...(min !== undefined && { min }), ...(thresholds && { thresholds }) }, overrides: [] },
  options,
});
const stat = (title, description, expr, options = {}) => panel('stat', title, description, [[expr]], {
  width: 3, height: 4, graphMode: 'none', colorMode: options.thresholds ? 'background' : 'value', textMode: 'value',
  reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false }, ...options,
});
const graph = (title, description, queries, options = {}) => panel('timeseries', title, description, queries, {
  width: 8, height: 8, min: 0, legend: { displayMode: 'list', placement: 'bottom', showLegend: true }, tooltip: { mode: 'multi', sort: 'desc' }, ...options,
});
const row = (title, ...panels) => ({ title, panels });

const rows = [
  row('Overview',
    stat('Daemons', 'Daemons that answer Prometheus.', `count(${of('build_info')})`, { thresholds: { mode: 'absolute', steps: [{ color: 'red', value: null }, { color: 'green', value: 1 }] } }),
    stat('Databases reached', 'The share of databases that some daemon reaches.', `avg(${top('source', of('database_up', 'source=~"$source"'))})`,
      { unit: 'percentunit', thresholds: { mode: 'absolute', steps: [{ color: 'red', value: null }, { color: 'green', value: 1 }] } }),
    stat('Waits for a person', 'Flagged operations: outboxd list --attention', `sum(${top('tool, reason', of('attention', tool))}) or vector(0)`, { thresholds: orange(1, 10) }),
    stat('Unknown', 'May have happened; the other side is being asked.', `sum(${top('tool', of('operations', tool, status('unknown')))})`, { thresholds: orange(1, 100) }),
    stat('Oldest unknown', 'Above 15 minutes somebody is called.', `max(${of('oldest_seconds', tool, status('unknown'))})`, { unit: 's', thresholds: orange(60, 900) }),
    stat('Oldest pending', 'How long the oldest operation that could run waits.', `max(${of('oldest_seconds', tool, status('pending'))})`, { unit: 's', thresholds: orange(60, 600) }),
    stat('Replay rate', 'Calls that were answered with an earlier operation, of all calls in the time shown. Exactly zero over a month means that the ids are wrong.',
      `sum(${gain('replayed_total', tool)}) / (sum(${gain('replayed_total', tool)}) + sum(${gain('enqueued_total', tool)}) > 0)`, { unit: 'percentunit', decimals: 2 }),
    stat('Duplicate effects', 'In the time shown. Anything but zero is a broken promise.', `sum(${gain('duplicate_effects_total', tool)})`, { decimals: 0, thresholds: red(1) }),
    graph('Enqueued', 'Operations that planners recorded, each second.', [[by('tool', rate('enqueued_total', tool)), '{{tool}}']], { unit: 'ops' }),
    graph('Attempts by outcome', 'How attempts ended, each second.', [[by('outcome', rate('attempts_total', tool)), '{{outcome}}']], { unit: 'ops' }),
    graph('Open operations', 'What is not final, by status.', [[by('status', top('tool, status', of('operations', tool))), '{{status}}']])),
  row('Tools',
    graph('Succeeded', 'Operations that succeeded, each second.', [[by('tool', rate('attempts_total', tool, 'outcome="succeeded"')), '{{tool}}']], { unit: 'ops' }),
    graph('Not succeeded', 'Attempts that ended otherwise.', [[by('tool, outcome', rate('attempts_total', tool, 'outcome!="succeeded"')), '{{tool}} {{outcome}}']], { unit: 'ops' }),
    graph('Slots in use', 'Attempts on their way, of those that may be. At 1 the tool is saturated.',
      [[`${by('tool', of('in_flight', tool))} / (${by('tool', of('slots', tool))} > 0)`, '{{tool}}']], { unit: 'percentunit' }),
    graph('Pending', 'Operations that wait for a slot.', [[top('tool', of('operations', tool, status('pending'))), '{{tool}}']]),
    graph('Circuit breakers', '1 while a host is down: of attempts, and of look-ups.',
      [[top('tool', of('breaker_open', tool)), '{{tool}} attempts'], [top('tool', of('probe_breaker_open', tool)), '{{tool}} look-ups']]),
    graph('Asked to wait', 'What is left of a Retry-After or a 429.', [[top('tool, lane', of('lane_paused_seconds', tool)), '{{tool}} {{lane}}']], { unit: 's' })),
  row('Latency',
    graph('Pickup', 'From being eligible to dispatch.', [0.5, 0.95, 0.99].map((q) => [share(q, 'pickup_latency_seconds', [], tool), `p${q * 100}`]), { unit: 's' }),
    graph('Pickup p99 by tool', 'From being eligible to dispatch.', [[share(0.99, 'pickup_latency_seconds', ['tool'], tool), '{{tool}}']], { unit: 's' }),
    graph('Attempts p99 by tool', 'From dispatch to the end of an attempt.', [[share(0.99, 'attempt_duration_seconds', ['tool'], tool), '{{tool}}']], { unit: 's' })),
  row('Unknown and attention',
    graph('Became unknown', 'Attempts whose end nobody saw, each second, by cause.', [[by('tool, cause', rate('unknown_total', tool)), '{{tool}} {{cause}}']], { unit: 'ops' }),
    graph('Look-ups', 'What the other side answered, each second.', [[by('tool, verdict', rate('reconciled_total', tool)), '{{tool}} {{verdict}}']], { unit: 'ops' }),
    graph('Unknown now', 'By tool.', [[top('tool', of('operations', tool, status('unknown'))), '{{tool}}']]),
    graph('Oldest unknown', 'By tool. Somebody is called at 15 minutes.', [[top('tool', of('oldest_seconds', tool, status('unknown'))), '{{tool}}']], { unit: 's' }),
    graph('Waits for a person', 'By tool and reason: outboxd list --attention', [[top('tool, reason', of('attention', tool)), '{{tool}} {{reason}}']]),
    graph('Late and fenced', 'Answers after their lease, writes that came too late, and second effects.',
      [[by('tool', gain('late_results_total', tool)), '{{tool}} late'], [by('tool', gain('fenced_writes_total', tool)), '{{tool}} fenced'], [by('tool', gain('duplicate_effects_total', tool)), '{{tool}} duplicate']])),
  row('Replays',
    graph('Replay rate', 'Over an hour: replays, of all calls.',
      [[`${by('tool', `increase(${of('replayed_total', tool)}[1h])`)} / (${by('tool', `increase(${of('replayed_total', tool)}[1h])`)} + ${by('tool', `increase(${of('enqueued_total', tool)}[1h])`)} > 0)`, '{{tool}}']], { unit: 'percentunit', width: 12 }),
    graph('Replays', 'Retries that did no harm, each second.', [[by('tool', rate('replayed_total', tool)), '{{tool}}']], { unit: 'ops', width: 12 })),
  row('Outbox age',
    graph('Oldest pending', 'Since it could run.', [[top('tool', of('oldest_seconds', tool, status('pending'))), '{{tool}}']], { unit: 's' }),
    graph('Oldest scheduled', 'Waits for its time, or for the next try.', [[top('tool', of('oldest_seconds', tool, status('scheduled'))), '{{tool}}']], { unit: 's' }),
    graph('Oldest attempting', 'Longer than the tool\'s timeout and the lease margin: no daemon looks.', [[top('tool', of('oldest_seconds', tool, status('attempting'))), '{{tool}}']], { unit: 's' })),
  row('Database',
    graph('Reached', '1 while some daemon reaches it.', [[top('source', of('database_up', 'source=~"$source"')), '{{source}}']]),
    graph('Errors', 'Each second, by kind.', [[by('source, kind', rate('database_errors_total', 'source=~"$source"')), '{{source}} {{kind}}']], { unit: 'ops' }),
    graph('Statements p99', 'Round trip of one statement.', [[share(0.99, 'database_statement_seconds', ['statement']), '{{statement}}']], { unit: 's' }),
    graph('Statements', 'Each second.', [[by('statement', rate('database_statement_seconds_count')), '{{statement}}']], { unit: 'ops' }),
    graph('Batches', 'Operations per lease and per completion, on average.',
      ['lease', 'complete'].map((what) => [`sum(${rate(`${what}_batch_size_sum`)}) / (sum(${rate(`${what}_batch_size_count`)}) > 0)`, what])),
    graph('Vacuum held back', 'Age of the oldest snapshot. An hour is too long.', [[top('source', of('xmin_horizon_age_seconds', 'source=~"$source"')), '{{source}}']], { unit: 's' }),
    graph('Since the last reconciliation', 'A pass of the reconciler ends every second or so.',
      [[`time() - ${top('source', of('last_reconcile_timestamp_seconds', 'source=~"$source"'))}`, '{{source}}']], { unit: 's' }),
    graph('Clock', 'The database\'s clock against the daemon\'s.', [[of('clock_offset_seconds', 'source=~"$source"'), '{{instance}} {{source}}']], { unit: 's', min: undefined })),
  row('Daemons',
    graph('Versions', 'More than one during an upgrade, no longer.', [[`count by (version, commit) (${of('build_info')})`, '{{version}} {{commit}}']]),
    graph('Reloads', 'In the time shown; error: the old configuration stayed.', [[by('result', gain('config_reloads_total')), '{{result}}']]),
    graph('Credentials and drift', 'Secrets that were refused; starts and reloads that do not agree with open operations.',
      [[by('credential', gain('credential_errors_total')), '{{credential}}'], [by('tool, kind', gain('config_drift_total', tool)), '{{tool}} {{kind}}']])),
];

// Rows of 24 columns, filled from the left.
const panels = [];
let y = 0;
for (const { title, panels: inside } of rows) {
  panels.push({ id: panels.length + 1, type: 'row', title, collapsed: false, gridPos: { h: 1, w: 24, x: 0, y: y++ }, panels: [] });
  let x = 0;
  let tallest = 0;
  for (const { width, height, ...one } of inside) {
    if (x + width > 24) { y += tallest; x = tallest = 0; }
    panels.push({ id: panels.length + 1, ...one, gridPos: { h: height, w: width, x, y } });
    x += width;
    tallest = Math.max(tallest, height);
  }
  y += tallest;
}

const variable = (name, label, query) => ({
  type: 'query', name, label, datasource: source, query: { query, refId: name }, definition: query, refresh: 2, sort: 1,
  multi: true, includeAll: true, allValue: '.*', current: { selected: true, text: ['All'], value: ['$__all'] }, hide: 0, options: [], regex: '', skipUrlSync: false,
});

export const dashboard = {
  __inputs: [{ name: 'DS_PROMETHEUS', label: 'Prometheus', description: 'Scrapes /metrics of the daemons', type: 'datasource', pluginId: 'prometheus', pluginName: 'Prometheus' }],
  __requires: [
    { type: 'grafana', id: 'grafana', name: 'Grafana', version: '9.0.0' },
    { type: 'datasource', id: 'prometheus', name: 'Prometheus', version: '1.0.0' },
    { type: 'panel', id: 'stat', name: 'Stat', version: '' },
    { type: 'panel', id: 'timeseries', name: 'Time series', version: '' },
  ],
  id: null, uid: 'outboxd', title: 'outboxd', description: 'The transactional outbox: what waits, what is in doubt, and what a person must look at.',
  tags: ['outboxd'], schemaVersion: 37, version: 1, editable: true, graphTooltip: 1, style: 'dark', timezone: '', weekStart: '', liveNow: false, fiscalYearStartMonth: 0,
  refresh: '30s', time: { from: 'now-6h', to: 'now' }, timepicker: {}, links: [],
  annotations: { list: [] },
  templating: { list: [
    variable('job', 'Job', 'label_values(outboxd_build_info, job)'),
    variable('instance', 'Daemon', 'label_values(outboxd_build_info{job=~"$job"}, instance)'),
    variable('source', 'Database', 'label_values(outboxd_database_up{job=~"$job"}, source)'),
    variable('tool', 'Tool', 'label_values(outboxd_operations{job=~"$job"}, tool)'),
  ] },
  panels,
};

const file = fileURLToPath(new URL('outboxd.json', import.meta.url));
if (process.argv[1] === fileURLToPath(import.meta.url)) writeFileSync(file, `${JSON.stringify(dashboard, null, 1)}\n`);
