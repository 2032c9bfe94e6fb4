// The operator page in a real browser: each way to steer, and the token.
import assert from 'node:assert/strict';
import { token, unknown, withToken } from './browser.mjs';
import { dialog, live, operation, shows, story, text } from './stories.mjs';

story('every way to steer, with its reason and its confirmation', async (w, open) => {
  for (const id of ['no']) await w.desk.plan(id, { posts: ['refuse'] });
  const daemon = await withToken(w);
  await w.enqueue('no');
  await w.settled('no');
  await w.desk.plan('no', { posts: [] });
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ('later', 'create_ticket', '{"title": "x"}', now() + interval '1 h')`);
  await unknown(w, 'u-1');
  await unknown(w, 'u-2');
  const page = await open(daemon, { hash: operation('no') });

  // Retry: not without a reason, and not when somebody thinks better of it.
  await page.click('[data-act="retry"]');
  await dialog(page, {}, 'Retry');
  assert.match(await text(page, 'dialog .problem'), /Say why/);
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog:not([open])', { state: 'attached' });
  assert.equal((await w.get('no')).status, 'failed');
  await page.click('[data-act="retry"]');
  await dialog(page, { reason: 'their fault' }, 'Retry');
  await shows(page, 'it succeeded', async () => /^succeeded/.test(await text(page, '.story-head')));
  assert.equal((await w.events('no', 'retried'))[0].detail.reason, 'their fault');

  await page.click('[data-act="compensate"]');
  await dialog(page, { arguments: '{"note": 12345678901234567890}', reason: 'by mistake' }, 'Start close');
  await shows(page, 'it is undone', async () => /Undone by/.test(await text(page, 'main')));
  await w.until('no:compensate:close', ['succeeded']);
  assert.equal((await w.desk.closes('no:compensate:close'))[0].note, 12345678901234567890, 'started with what was typed');

  await page.goto(`${page.url0}${operation('later')}`);
  await page.click('[data-act="cancel"]');
  await dialog(page, { reason: 'not needed' }, 'Cancel the operation');
  await shows(page, 'it is cancelled', async () => /^cancelled/.test(await text(page, '.story-head')));

  // A refusal is said, and nothing is lost of what was typed.
  await page.goto(`${page.url0}${operation('u-1')}`);
  await page.click('[data-act="resolve"]');
  await dialog(page, { verdict: 'applied', result: '{nothing', reason: 'seen there', actor: 'Ann' }, 'Record the verdict');
  await shows(page, 'no JSON', async () => /no JSON/.test(await text(page, 'dialog .problem')));
  await w.db.query(`UPDATE outbox.queue q SET attempt_epoch = 7 FROM outbox.operation o WHERE o.seq = q.seq AND o.operation_id = 'u-1'`);
  await dialog(page, { result: '{"id": 9007199254740993}' }, 'Record the verdict');
  await shows(page, 'it is stale', async () => /another attempt since/.test(await text(page, 'dialog .problem')));
  await page.click('dialog [data-close]');
  await shows(page, 'the new epoch', async () => (await page.getAttribute('[data-act="resolve"]', 'data-epoch')) === '7');
  await page.click('[data-act="resolve"]');
  assert.equal(await page.inputValue('dialog [name="actor"]'), '');
  await dialog(page, { verdict: 'applied', result: '{"id": 9007199254740993}', reason: 'seen there', actor: 'Ann' }, 'Record the verdict');
  await shows(page, 'it succeeded', async () => /^succeeded/.test(await text(page, '.story-head')));
  const [{ result }] = (await w.db.query(`SELECT result::text FROM outbox.get('u-1')`)).rows;
  assert.equal(result, '{"id": 9007199254740993}', 'the digits that were typed');

  await page.goto(`${page.url0}${operation('u-2')}`);
  await page.click('[data-act="probe"]');
  await shows(page, 'it is said', async () => /is asked within/.test(await text(page, '#toast')));
  assert.equal((await w.events('u-2', 'probe')).length, 1);
  await w.db.query(`UPDATE outbox.outcome e SET attention = 'late_effect' FROM outbox.operation o WHERE o.seq = e.seq AND o.operation_id = 'u-1'`);
  await page.goto(`${page.url0}${operation('u-1')}`);
  await page.click('[data-act="acknowledge"]');
  await dialog(page, { reason: 'known' }, 'Acknowledge');  // the name is remembered
  await shows(page, 'the flag is gone', async () => (await page.locator('[data-act="acknowledge"]').count()) === 0);

  await page.goto(`${page.url0}#/`);
  await page.click('[data-act="pause"][data-tool="send_report"]');
  await dialog(page, { reason: 'the relay moves' }, 'Pause the tool');
  await shows(page, 'it is paused', async () => /paused[^]*the relay moves/.test(await text(page, 'tr[data-key="send_report"]')));
  await page.click('[data-act="resume"][data-tool="send_report"]');
  await dialog(page, {}, 'Resume the tool');
  await shows(page, 'it goes on', async () => !/paused/.test(await text(page, 'tr[data-key="send_report"]')));
});

story('no token, a wrong one, and the right one; signing out', async (w, open) => {
  const daemon = await withToken(w);
  await w.enqueue('a', { args: { title: 'very private title' } });
  await w.settled('a');
  const page = await open(daemon, { signedIn: false, hash: operation('a') });
  await page.waitForSelector('dialog[open]');
  assert.ok(!(await page.content()).includes('very private'));
  await dialog(page, { token: 'not-the-token-at-all' }, 'Sign in');
  await shows(page, 'it is the wrong one', async () => /not the right one/.test(await text(page, '#banner')));
  assert.ok(!(await page.content()).includes('very private'));
  if (!(await page.locator('dialog[open]').count())) { await page.click('#token-button'); await page.click('#token-button'); }
  await dialog(page, { token: ` ${token}\n` }, 'Sign in');
  await shows(page, 'it is shown', async () => /very private title/.test(await text(page, 'main')));
  await page.reload();
  await shows(page, 'the tab remembers', async () => /very private title/.test(await text(page, 'main')));
  assert.equal(await page.evaluate(() => localStorage.length + document.cookie.length), 0);
  await page.click('#token-button');
  await shows(page, 'signed out', async () => /signed out/.test(await text(page, '#live')));
  assert.ok(!(await page.locator('main').innerText()).includes('very private'));
  await page.reload();
  await page.waitForSelector('dialog[open]');

  // Without a token file the page reads, and steering says what is missing.
  const free = await w.start({ admin: {} });
  const reader = await open(free, { signedIn: false });
  await live(reader);
  await reader.click('[data-act="pause"]');
  await dialog(reader, { token: 'whatever-it-is-1234' }, 'Sign in');
  await dialog(reader, { reason: 'x' }, 'Pause the tool');
  await shows(reader, 'it is off', async () => /Steering is off/.test(await text(reader, 'dialog .problem')));
});
