// A headless Chromium beside a daemon with a token, and an outbox with some of everything in it.
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { chromium } from 'playwright-core';
import { closableTool, ticketTool } from '../e2e/config.mjs';

export const token = 'a-token-for-tests-0123456789';
const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);

export async function openBrowser(more = []) {
  if (!executablePath) throw new Error('no Chromium here; ./dev page-test installs one (package chromium)');
  const profile = mkdtempSync(path.join(os.tmpdir(), 'outboxd-page-'));
  const browser = await chromium.launch({
    executablePath,
    args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', `--crash-dumps-dir=${profile}`, ...more],
  });
  const close = browser.close.bind(browser);
  browser.close = async () => { await close(); rmSync(profile, { recursive: true, force: true }); };
  return browser;
}

// A page whose every mistake counts: errors, blocked content, and requests to anywhere else.
export async function openPage(browser, daemon, { hash = '', signedIn = true, ...options } = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource/.test(message.text())) page.faults.push(`console: ${message.text()}`);
  });
  page.on('request', (request) => {
    if (new URL(request.url()).host !== `127.0.0.1:${daemon.port}`) page.faults.push(`request: ${request.url()}`);
  });
  page.url0 = `http://127.0.0.1:${daemon.port}/`;
  if (signedIn) await page.addInitScript((text) => { if (location.protocol === 'http:') sessionStorage.setItem('outboxd.token', text); }, token);
  await page.goto(page.url0 + hash);
  return page;
}

export const withToken = (w, more = {}) => w.start({
  tools: { create_ticket: closableTool(w.desk.url), send_report: ticketTool(w.desk.url) },
  ...more,
  admin: { token_file: w.write('token', `${token}\n`), ...more.admin },
});

// An operation in a state that a person has to end. In one transaction, so that no daemon takes it before.
export async function unknown(w, id, attention = 'manual', tool = 'refund_order') {
  const client = await w.db.connect();
  try {
    await client.query('BEGIN');
    await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, created_at) VALUES ($1, $2, '{"order": "A-1", "amount": 20.00}', 'run-7', now() - interval '44 min')`, [id, tool]);
    await client.query(`UPDATE outbox.queue q SET status = 'unknown', lease_epoch = 2, attempt_epoch = 1, attempts = 1, due_at = 'infinity', probes = 3,
       unknown_since = now() - interval '42 min', attention = $2, started_at = now() - interval '43 min', deadline_at = now() - interval '42 min',
       error = '{"code": "timeout", "message": "No answer within 20 s."}' FROM outbox.operation o WHERE o.seq = q.seq AND o.operation_id = $1`, [id, attention]);
    await client.query(`INSERT INTO outbox.event (operation_id, kind, epoch, at, detail) VALUES
       ($1, 'unknown', 2, now() - interval '42 min', '{"code": "timeout", "cause": "timeout", "message": "No answer within 20 s."}'),
       ($1, 'attention', 2, now() - interval '40 min', jsonb_build_object('attention', $2::text))`, [id, attention]);
    await client.query(`COMMIT`);
  } finally {
    client.release();
  }
}
