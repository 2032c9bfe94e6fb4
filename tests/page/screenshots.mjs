// Draws docs/page-*.png anew: node tests/page/screenshots.mjs [FOLDER]. Not a test.
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { closableTool, ticketTool } from '../e2e/config.mjs';
import { story } from '../e2e/world.mjs';
import { openBrowser, openPage, unknown, withToken } from './browser.mjs';

const folder = path.resolve(process.argv[2] ?? process.env.FOLDER ?? path.join(path.dirname(fileURLToPath(import.meta.url)), '../../docs'));

const refundTool = (url) => {
  const tool = ticketTool(url, { arguments: { type: 'object' } });
  Object.assign(tool.execute, { url: `${url}/refunds`, json: { order: '{{ arguments.order }}', amount: '{{ arguments.amount }}', reference: '{{ operation.key }}' } });
  Object.assign(tool.reconcile, { url: `${url}/refunds`, must_equal: { '/order': '{{ arguments.order }}' } });
  return tool;
};

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
  const daemon = await withToken(w, { tools: { create_ticket: closableTool(w.desk.url), send_report: ticketTool(w.desk.url), refund_order: refundTool(w.desk.url) } });
  await fill(w);
  const browser = await openBrowser();
  const shots = [
    ['page-overview', '', {}],
    ['page-operation', '#/operation/refund-A-1', { colorScheme: 'dark' }],
    ['page-phone', '', { viewport: { width: 390, height: 844 } }],
  ];
  try {
    for (const [name, hash, options] of shots) {
      const page = await openPage(browser, daemon, { hash, ...options });
      await page.waitForSelector('#live[data-state="live"]');
      await page.waitForTimeout(300);
      await page.screenshot({ path: path.join(folder, `${name}.png`) });
      if (name === 'page-operation') {
        await page.click('[data-act="resolve"]');
        await page.screenshot({ path: path.join(folder, 'page-resolve.png') });
      }
      if (page.faults.length) console.log(name, page.faults);
      await page.context().close();
    }
  } finally {
    await browser.close();
  }
});
