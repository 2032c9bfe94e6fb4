// The dashboard for Grafana and the alert rules, in a real Prometheus that scrapes a real daemon: every
// query is valid, is about metrics and labels that exist, and says something.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { dashboard } from '../../config/grafana/dashboard.mjs';
import { story } from './world.mjs';
import { Program, eventually, freePort, sleep } from './util.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(path.join(root, 'config/grafana/outboxd.json'), 'utf8');
const panels = dashboard.panels.filter((p) => p.type !== 'row');
const queries = panels.flatMap((p) => p.targets.map((t) => ({ ...t, title: p.title })));

test('the committed dashboard is what dashboard.mjs writes (else: node config/grafana/dashboard.mjs)', () => {
  assert.equal(text, `${JSON.stringify(dashboard, null, 1)}\n`);
});

test('Grafana can import it: inputs, ids, places, variables', () => {
  assert.equal(dashboard.id, null);
  const [input] = dashboard.__inputs;
  // Every data source is the input, so that the import asks for it and finds no stranger.
  const uids = [...text.matchAll(/"uid": "([^"]*)"/g)].map((m) => m[1]).filter((uid) => uid !== dashboard.uid);
  assert.deepEqual([...new Set(uids)], [`\${${input.name}}`]);
  assert.deepEqual(new Set(dashboard.__requires.filter((r) => r.type === 'panel').map((r) => r.id)), new Set(panels.map((p) => p.type)));
  assert.equal(new Set(dashboard.panels.map((p) => p.id)).size, dashboard.panels.length);
  const taken = new Map();
  for (const { title, gridPos: { x, y, w, h } } of dashboard.panels) {
    assert.ok(x >= 0 && w > 0 && h > 0 && x + w <= 24, title);
    for (let i = x; i < x + w; i++) for (let j = y; j < y + h; j++) {
      assert.equal(taken.get(`${i},${j}`), undefined, `${title} lies on ${taken.get(`${i},${j}`)}`);
      taken.set(`${i},${j}`, title);
    }
  }
  const names = dashboard.templating.list.map((v) => v.name);
  assert.deepEqual([...names].sort(), ['instance', 'job', 'source', 'tool']);
  const used = new Set([...text.matchAll(/\$([a-z_]+)/g)].map((m) => m[1]).filter((name) => !name.startsWith('__')));
  for (const name of used) assert.ok(names.includes(name), `$${name} is no variable`);
  for (const name of names) assert.ok(used.has(name), `$${name} is not used`);
});

test('every panel says what it shows, every query who it asks, every legend what it has', () => {
  for (const panel of panels) {
    assert.ok(panel.title && panel.description.length > 5, panel.title);
    assert.equal(new Set(panel.targets.map((t) => t.refId)).size, panel.targets.length, panel.title);
  }
  for (const { title, expr, legendFormat } of queries) {
    for (const [, selector] of expr.matchAll(/outboxd_[a-z_]+(\{[^}]*\})?/g)) {
      assert.match(selector ?? '', /job=~"\$job", instance=~"\$instance"/, `${title}: ${expr}`);
    }
    for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) {
      const kept = [...expr.matchAll(/by \(([^)]*)\)/g)].flatMap((m) => m[1].split(/, */));
      assert.ok(kept.length === 0 || kept.includes(label), `${title}: ${label} is summed away`);
    }
  }
});

const families = (metrics) => new Map([...metrics.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => [name, type]));

// What a family is called in a query.
function family(known, name) {
  if (known.has(name)) return name;
  const base = name.replace(/_(bucket|sum|count)$/, '');
  return known.get(base) === 'histogram' ? base : undefined;
}

// Families that have a series only after something went wrong: nothing may be shown of them.
const silent = ['outboxd_credential_errors_total', 'outboxd_xmin_horizon_age_seconds', 'outboxd_clock_offset_seconds'];

story('a real Prometheus answers every query of the dashboard, and takes every alert rule', async (w) => {
  const daemon = await w.start();
  const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-e2e-prometheus-'));
  const port = await freePort();
  const file = (name) => JSON.stringify(path.join(root, 'config/alerts', name));
  writeFileSync(path.join(dir, 'prometheus.yml'), [
    'global: { scrape_interval: 1s, evaluation_interval: 1s }',
    `rule_files: [${file('outboxd.rules.yml')}, ${file('switches.rules.yml')}]`,
    'scrape_configs:', `  - { job_name: outboxd, static_configs: [ { targets: [ "127.0.0.1:${daemon.port}" ] } ] }`, ''].join('\n'));
  const prometheus = new Program('prometheus', [`--config.file=${dir}/prometheus.yml`, `--storage.tsdb.path=${dir}/data`, `--web.listen-address=127.0.0.1:${port}`, '--log.level=warn']);
  try {
    const ask = async (what, values = {}) => {
      const answer = await fetch(`http://127.0.0.1:${port}/api/v1/${what}?${new URLSearchParams(values)}`, { signal: AbortSignal.timeout(10_000) });
      const body = await answer.json();
      assert.equal(body.status, 'success', `${JSON.stringify(values)}: ${body.error}`);
      return body.data;
    };
    await eventually('Prometheus has seen the daemon', async () => prometheus.ended || (await ask('query', { query: 'up{job="outboxd"} == 1' })).result.length === 1, 30_000);
    assert.equal(prometheus.ended, null, prometheus.output);

    // One that succeeds and is asked for again, one that is looked up, one that waits.
    await w.desk.plan('lost', { posts: ['drop'] });
    for (const id of ['one', 'one', 'lost']) await w.enqueue(id);
    await w.settled('one');
    await w.settled('lost');
    await eventually('the replay is counted', () => daemon.metric('outboxd_replayed_total', 'create_ticket'), 30_000);
    const metrics = (await daemon.ask('/metrics')).text;
    const known = families(metrics);
    await sleep(2500);  // two more samples, so that a rate has what it needs

    const empty = [];
    for (const { title, expr } of queries) {
      for (const [name] of expr.matchAll(/outboxd_[a-z_]+/g)) assert.ok(family(known, name), `${title}: no such metric: ${name}`);
      const query = expr.replaceAll('$__rate_interval', '30s').replaceAll('$__range', '5m').replaceAll(/\$(job|instance|tool|source)/g, '.*');
      const { result } = await ask('query', { query });
      if (result.length === 0 && !silent.some((name) => expr.includes(name))) empty.push(`${title}: ${query}`);
    }
    assert.deepEqual(empty, []);
    // A label that a family does not have would be grouped by in silence, or never match.
    const series = await ask('series', { 'match[]': '{__name__=~"outboxd_.*"}' });
    const labelsOf = (name) => new Set(series.filter((s) => s.__name__ === name || s.__name__.startsWith(`${name}_`)).flatMap((s) => Object.keys(s)));
    const rules = (await ask('rules')).groups.flatMap((g) => g.rules);
    const alerts = rules.filter((r) => r.type === 'alerting');
    for (const { title, expr } of [...queries, ...alerts.map((r) => ({ title: r.name, expr: r.query }))]) {
      for (const [, name, selector] of expr.matchAll(/(outboxd_[a-z_]+)(\{[^}]*\})?/g)) {
        const have = labelsOf(family(known, name));
        if (have.size === 0) { assert.ok(silent.includes(family(known, name)), `${title}: ${name} has no series`); continue; }
        for (const [, label] of (selector ?? '').matchAll(/(\w+)(?:=~|!~|!=|=)"/g)) assert.ok(have.has(label), `${title}: ${name} has no label ${label}`);
      }
      for (const [, labels, inside] of expr.matchAll(/by ?\(([^)]*)\) \((?:\w+\()?(outboxd_[a-z_]+)/g)) {
        const have = labelsOf(family(known, inside));
        if (have.size) for (const label of labels.split(/, */)) assert.ok(have.has(label), `${title}: ${inside} has no label ${label}`);
      }
    }
    for (const variable of dashboard.templating.list) {
      const [, match, label] = /label_values\((.*), (\w+)\)/.exec(variable.definition);
      const values = await ask(`label/${label}/values`, { 'match[]': match.replaceAll('$job', '.*') });
      assert.ok(values.length > 0, variable.definition);
    }
    assert.ok(alerts.length >= 9);
    await eventually('every rule was evaluated', async () => (await ask('rules')).groups.every((g) => g.rules.every((r) => r.health !== 'unknown')), 30_000);
    for (const rule of (await ask('rules')).groups.flatMap((g) => g.rules)) assert.equal(rule.health, 'ok', `${rule.name}: ${rule.lastError}`);
  } finally {
    await prometheus.stop('SIGTERM');
    rmSync(dir, { recursive: true, force: true });
  }
  await daemon.stop();
});
