// The crash story through every file of config/cookbook: the daemon is killed when the other side has
// done it and nothing is recorded. One effect each, and the other side's own word for it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { Cookbook, files, table, tools } from './cookbook.mjs';

const failpoint = (w, name) => `${name}=pause:${path.join(w.dir, 'never')}`;

async function inTable(w, book, kills, name) {
  return Promise.all(files.map(async (file) => ({
    file, kills, effects: book.effects(file, name).length, status: (await w.get(`${name}-${file}`)).status,
    verdict: (await w.events(`${name}-${file}`, 'probe')).map((event) => event.detail.verdict).join(', ') || 'none',
  })));
}

function sameResult(file, row, effect) {
  const wanted = tools[file].result?.(effect);
  if (Array.isArray(wanted)) {
    const [member, value] = wanted;
    assert.ok(value === undefined ? row.result[member] : row.result[member] === value, `${file}: ${JSON.stringify(row.result)}`);
  } else if (wanted) {
    assert.deepEqual(row.result, wanted, file);
  }
}

// What each file says about a second request is what its other side does: so the counts above would
// have shown one.
async function sentAgain(book) {
  const wanted = {  // file → its answer, and the effects then
    github_issue: [201, 2], google_calendar_event: [409, 1], inhouse_webhook: [201, 1], jira_issue: [201, 2], object_store: [412, 1],
    pagerduty: [202, 1], request_tracker: [201, 2], servicenow_incident: [201, 2], slack_message: [200, 2], stripe_refund: [200, 1], zendesk_ticket: [201, 1],
  };
  for (const [file, [status, effects]] of Object.entries(wanted)) {
    const marker = book.marker(file, 'clean');
    const first = book.server.requests.find((request) => request.method === 'POST' && request.text.includes(marker));
    assert.deepEqual([await first.again(), file], [status, file]);
    await sleep(file === 'pagerduty' ? 2000 : 0);
    assert.equal(book.effects(file, 'clean').length, effects, `${file}, sent again`);
  }
}

story('every cookbook file: killed after the effect and before the record, and with a lost answer: one effect, found', async (w) => {
  assert.deepEqual(Object.keys(tools).sort(), files, 'each file has somebody on the other side');
  const book = await Cookbook.open(w);
  try {
    const first = await w.start({ ...book.configuration, failpoints: failpoint(w, 'after_effect_before_complete') });
    for (const file of files) await book.enqueue(file, 'crash');
    for (const file of files) await eventually(`${file} has its effect`, () => book.effects(file, 'crash').length === 1, 30_000);
    await sleep(500);
    await first.kill();
    for (const file of files) assert.equal((await w.get(`crash-${file}`)).status, 'attempting', file);

    // Meanwhile, under the next daemon: an answer that is lost, and one that is not.
    await w.start(book.configuration);
    for (const file of files) {
      book.loseAnswer(file, 'lost');
      await book.enqueue(file, 'lost');
    }
    await eventually('the mail\'s answer is lost', () => book.sides.smtp_mail.lose === 0 && book.sides.smtp_mail.dots >= 2, 30_000);
    for (const file of files) await book.enqueue(file, 'clean');
    for (const name of ['crash', 'lost', 'clean']) for (const file of files) await w.settled(`${name}-${file}`, 90_000);

    const rows = await inTable(w, book, 1, 'crash');
    console.log(table(rows));
    for (const row of rows) {
      assert.deepEqual([row.effects, row.status, row.verdict.split(', ').at(-1)], [1, 'succeeded', 'found'], row.file);
      const recorded = await w.get(`crash-${row.file}`);
      assert.deepEqual([recorded.attempts, recorded.attention], [1, null], row.file);
      sameResult(row.file, recorded, book.effects(row.file, 'crash')[0]);
    }
    for (const file of files) {
      for (const name of ['lost', 'clean']) {
        const row = await w.get(`${name}-${file}`);
        assert.deepEqual([row.status, row.attempts, book.effects(file, name).length], ['succeeded', 1, 1], `${name} ${file}`);
        sameResult(file, row, book.effects(file, name)[0]);
        const probes = await w.events(row.operation_id, 'probe');
        const asked = file === 'pagerduty' || name === 'lost';
        assert.equal(probes.some((event) => event.detail.verdict === 'found'), asked, `${name} ${file}: ${JSON.stringify(probes)}`);
      }
      // Again is no second time.
      assert.equal((await book.enqueue(file, 'crash')).replayed, true, file);
      assert.equal(book.effects(file, 'crash').length, 1, file);
    }
    await sentAgain(book);
    assert.deepEqual(book.proxy.refused, [], 'nobody was asked but those in the files');
    assert.ok(book.server.requests.every((request) => request.status !== 401), 'nobody was refused');
    assert.equal(book.server.broken, undefined);
    const { verified, refused } = book.sides.inhouse_webhook;
    assert.ok(verified >= 5 && refused.length === 0, `standardwebhooks verified ${verified}, refused ${refused}`);
  } finally {
    await book.close();
  }
}, { timeout: 240_000 });
