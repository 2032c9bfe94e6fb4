// The other crash through every file of config/cookbook: the daemon is killed when the attempt is
// journaled and nothing was sent. The other side says "not there"; that counts after the file's own
// settle and confirmations, then it is done, once. COOKBOOK_FULL=1 waits for all of them (20 minutes,
// mail being the slowest), otherwise for those that settle within 15 s.
import assert from 'node:assert/strict';
import path from 'node:path';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { Cookbook, files, table } from './cookbook.mjs';

const full = process.env.COOKBOOK_FULL === '1';
const quick = ['caldav_event', 'google_calendar_event', 'inhouse_webhook', 'object_store', 'zendesk_ticket'];
const minutes = 60_000;

story('every cookbook file: killed before anything was sent: absent is believed late, and then it is done once', async (w) => {
  const book = await Cookbook.open(w);
  try {
    const settings = { ...book.configuration, defaults: { ...book.configuration.defaults, timeout: '3s' } };
    const first = await w.start({ ...settings, failpoints: `after_lease_before_dispatch=pause:${path.join(w.dir, 'never')}` });
    for (const file of files) await book.enqueue(file, 'early');
    for (const file of files) await eventually(`${file} is under way`, async () => (await w.get(`early-${file}`)).status === 'attempting');
    await first.kill();
    for (const file of files) assert.equal(book.effects(file, 'early').length, 0, file);

    await w.start(settings);
    // Nobody is quick to believe it: at the second "not there" nothing has been sent yet.
    await eventually('they are asked', async () => (await w.events('early-zendesk_ticket', 'probe')).length >= 2, 60_000);
    for (const file of files) assert.equal(book.effects(file, 'early').length, 0, `${file} is early`);
    const waited = full ? files : quick;
    for (const file of waited) await w.settled(`early-${file}`, full ? 25 * minutes : 60_000);
    await sleep(500);
    const rows = [];
    for (const file of waited) {
      const row = await w.get(`early-${file}`);
      const verdicts = (await w.events(`early-${file}`, 'probe')).map((event) => event.detail.verdict);
      rows.push({ file, kills: 1, effects: book.effects(file, 'early').length, verdict: `${verdicts.length} × ${[...new Set(verdicts)].join(', ')}`, status: row.status });
      assert.deepEqual([row.status, row.attempts, row.attention], ['succeeded', 2, null], file);
      assert.equal(verdicts[0], 'absent', file);
      // What is accepted is found in the end; everything else was answered.
      assert.equal(verdicts.includes('found'), file === 'pagerduty', `${file}: ${verdicts}`);
      assert.equal(book.effects(file, 'early').length, 1, file);
    }
    console.log(table(rows));
    assert.equal(book.server.broken, undefined);
  } finally {
    await book.close();
  }
}, { timeout: full ? 30 * minutes : 180_000 });
