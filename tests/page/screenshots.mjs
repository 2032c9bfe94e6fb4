// Draws docs/page-*.png anew: node tests/page/screenshots.mjs [FOLDER]. Not a test.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { story } from '../e2e/world.mjs';
import { openBrowser, openPage, unknown, withToken } from './browser.mjs';

const folder = path.resolve(process.argv[2] ?? process.env.FOLDER ?? path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs'));

async function fill(w) {
  await w.desk.plan('T-4712', { posts: ['refuse'] });
  await w.desk.plan('T-4713', { posts: ['cut'] });
  for (const id of ['T-4712', 'T-4713', 'T-4714']) await w.enqueue(id, { args: { title: 'disk full on db-3', severity: 2 } });
  for (const id of ['T-4712', 'T-4713', 'T-4714']) await w.settled(id);
  for (let i = 0; i < 4; i += 1) await w.enqueue('T-4714', { args: { title: 'disk full on db-3', severity: 2 } });
  for (const [id, why] of [['refund-A-1', 'manual'], ['refund-A-9', 'conflict'], ['refund-B-2', 'give_up']]) await unknown(w, id, why);
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) SELECT 'report-' || i, 'send_report', '{"title": "weekly"}', now() + i * interval '7 min' FROM generate_series(1, 14) i`);
  await w.db.query(`INSERT INTO outbox.tally (at, tool, enqueued, replayed) SELECT date_bin('1 hour', now() - i * interval '1 hour', '2000-01-01Z'), t.tool,
     (t.base * (1.2 + sin(i / 3.0 + t.base)))::int, (t.base * 0.06 * (1 + cos(i / 2.0)))::int
     FROM generate_series(1, 40) i, (VALUES ('create_ticket', 420), ('send_report', 90), ('refund_order', 35)) t (tool, base) ON CONFLICT DO NOTHING`);
  await w.db.query(`UPDATE outbox.tool SET paused_at = now(), paused_reason = 'the mail relay is being moved' WHERE tool = 'send_report'`);
}

story('screenshots', async (w) => {
  mkdirSync(folder, { recursive: true });
  const daemon = await withToken(w);
  await fill(w);
  const browser = await openBrowser();
  const shots = [
    ['page-overview', '', {}],
    ['page-overview-dark', '', { colorScheme: 'dark' }],
    ['page-operations', '#/operations', {}],
    ['page-operation', '#/operation/T-4713', {}],
    ['page-operation-dark', '#/operation/refund-A-1', { colorScheme: 'dark' }],
    ['page-phone', '', { viewport: { width: 390, height: 844 } }],
    ['page-phone-list', '#/operations', { viewport: { width: 390, height: 844 }, colorScheme: 'dark' }],
  ];
  try {
    for (const [name, hash, options] of shots) {
      const page = await openPage(browser, daemon, { hash, ...options });
      await page.waitForSelector('#live[data-state="live"]');
      await page.screenshot({ path: path.join(folder, `${name}.png`) });
      if (name === 'page-operation-dark') {
        await page.click('[data-act="resolve"]');
        await page.screenshot({ path: path.join(folder, 'page-dialog.png') });
      }
      if (page.faults.length) console.log(name, page.faults);
      await page.context().close();
    }
  } finally {
    await browser.close();
  }
});
