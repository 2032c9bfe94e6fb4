// The operator page in a real browser: what it shows, the keys, and that it follows.
import assert from 'node:assert/strict';
import { ticketTool } from '../e2e/config.mjs';
import { sleep } from '../e2e/util.mjs';
import { unknown, withToken } from './browser.mjs';
import { ids, live, operation, shows, story, text } from './stories.mjs';

story('the overview: what waits for a person first, counts per tool, daemons, and it follows', async (w, open) => {
  const daemon = await withToken(w);
  await unknown(w, 'refund-1');
  for (const id of ['a', 'b']) { await w.enqueue(id); await w.settled(id); }
  const page = await open(daemon);
  await live(page);
  assert.match(await text(page, '.card[data-key="attention"]'), /Needs attention\s+1\s/);
  assert.match(await text(page, '.card[data-key="unknown"]'), /Unknown\s+1\s+oldest 42 min/);
  const tools = await page.locator('section[data-key="tools"] tbody th .name').allInnerTexts();
  assert.deepEqual(tools, ['refund_order', 'create_ticket', 'create_ticket:close', 'send_report'], 'attention first, then by name');
  assert.match(await text(page, 'section[data-key="tools"] tr[data-key="refund_order"]'), /not in the catalogue/);
  assert.match(await text(page, 'section[data-key="workers"] tbody'), /e2e[^]*alive/);
  assert.equal(await page.locator('.spark').count(), 4);
  // Live: no reload, and what is in focus stays there.
  await page.focus('tr[data-key="create_ticket"] .name');
  await unknown(w, 'refund-2', 'conflict');
  await shows(page, 'the second one is counted', async () => /Needs attention\s+2\s/.test(await text(page, '.card[data-key="attention"]')));
  assert.equal(await page.evaluate(() => document.activeElement.textContent), 'create_ticket');
  await page.click('.card[data-key="attention"]');
  await shows(page, 'the list is there', async () => (await ids(page)).join() === 'refund-2,refund-1');
  assert.match(page.url(), /attention=true/);
});

story('the list: filters, paging, new rows, and nothing there', async (w, open) => {
  const daemon = await withToken(w, { tools: { create_ticket: ticketTool(w.desk.url), other: ticketTool(w.desk.url) } });
  const page = await open(daemon, { hash: '#/operations' });
  await shows(page, 'it says that there is nothing', async () => /No operations yet/.test(await text(page, 'main')));
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at)
     SELECT 'row-' || lpad(i::text, 3, '0'), CASE WHEN i % 10 = 0 THEN 'other' ELSE 'create_ticket' END, '{"title": "x"}', now() + interval '1 h' FROM generate_series(1, 120) i`);
  await shows(page, 'rows come by themselves', async () => (await ids(page)).length === 50);
  const seen = await ids(page);
  assert.equal(seen[0], 'row-120');
  await page.click('[data-act="older"]');
  await shows(page, 'the second page', async () => (await ids(page))[0] === 'row-070');
  seen.push(...await ids(page));
  await page.keyboard.press('n');
  await shows(page, 'the third page', async () => (await ids(page)).length === 20);
  seen.push(...await ids(page));
  assert.equal(new Set(seen).size, 120);
  assert.equal(await page.locator('[data-act="older"]').count(), 0);
  await page.click('[data-act="newer"]');
  await shows(page, 'back on the second page', async () => (await ids(page))[0] === 'row-070');
  await page.click('[data-act="newest"]');
  await shows(page, 'the first page', async () => (await ids(page))[0] === 'row-120');
  await page.selectOption('main select', 'other');
  await shows(page, 'one tool', async () => (await ids(page)).length === 12);
  await page.click('.chip[data-value="failed"]');
  await shows(page, 'nothing matches', async () => /Nothing matches/.test(await text(page, 'main')));
  assert.equal(await page.getAttribute('.chip[data-value="failed"]', 'aria-pressed'), 'true');
  await page.click('.chip[data-value="scheduled"]');
  await shows(page, 'both states', async () => (await ids(page)).length === 12);
  assert.match(page.url(), /status=failed%2Cscheduled&tool=other/);
  await page.goBack();
  await shows(page, 'the address is the state', async () => /Nothing matches/.test(await text(page, 'main')));
  await page.click('[data-act="clear"]');
  await shows(page, 'all of them', async () => (await ids(page)).length === 50);
});

story('one operation with its whole story, digits and all; and one that is not there', async (w, open) => {
  await w.desk.plan('cut', { posts: ['cut'] });
  const daemon = await withToken(w, { tools: { create_ticket: ticketTool(w.desk.url, { arguments: { type: 'object' } }) } });
  await w.db.query(`SELECT outbox.enqueue('create_ticket', '{"title": "disk full", "n": 9007199254740993.10, "z": 20.00}', 'cut')`);
  await w.settled('cut');
  await w.enqueue('cut', { args: { title: 'disk full' } }).catch(() => {});
  const page = await open(daemon, { hash: operation('cut') });
  await live(page);
  const main = await text(page, 'main');
  assert.match(main, /succeeded[^]*This action was performed/);
  assert.match(main, /9007199254740993\.10/);
  assert.match(main, /"z": 20\.00/);
  assert.match(main, /"id": "T-1"/);
  assert.match(main, new RegExp(`POST ${w.desk.url}/tickets`));
  assert.match(main, /Look-up[^]*GET /);
  const kinds = await page.locator('.timeline strong').allInnerTexts();
  assert.deepEqual(kinds.slice(0, 4), ['created', 'attempt', 'unknown', 'probe']);
  assert.equal(kinds.at(-1), 'succeeded');
  // What is folded open stays open while the page follows.
  await page.click('.timeline details summary');
  await w.db.query(`INSERT INTO outbox.event (operation_id, kind, detail) VALUES ('cut', 'replayed', '{"again": true}')`);
  await shows(page, 'the new event', async () => (await page.locator('.kind-replayed').count()) > 0);
  assert.equal(await page.locator('.timeline details[open]').count(), 1);
  await page.fill('#search-id', 'nobody/../x');
  await page.keyboard.press('Enter');
  await shows(page, 'it is not there', async () => /No such operation[^]*nobody\/\.\.\/x/.test(await text(page, 'main')));
});

story('keys: search, rows, open, back, help; and the focus is seen', async (w, open) => {
  const daemon = await withToken(w);
  for (const id of ['one', 'two', 'three']) { await w.enqueue(id); await w.settled(id); }
  const page = await open(daemon, { hash: '#/operations' });
  await shows(page, 'rows', async () => (await ids(page)).length === 3);
  const focused = () => page.evaluate(() => document.activeElement.querySelector?.('.id')?.textContent ?? document.activeElement.id);
  await page.keyboard.press('j');
  assert.equal(await focused(), 'three');
  await page.keyboard.press('j');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('j');
  assert.equal(await focused(), 'one', 'the last row stays the last');
  await page.keyboard.press('k');
  assert.equal(await focused(), 'two');
  const outline = await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle);
  assert.notEqual(outline, 'none');
  await sleep(2500);  // a look at the server meanwhile
  assert.equal(await focused(), 'two');
  await page.keyboard.press('Enter');
  await shows(page, 'it opens', async () => (await page.locator('h1.id').count()) === 1);
  assert.match(page.url(), /operation\/two$/);
  await page.keyboard.press('Escape');
  await shows(page, 'back in the list', async () => (await ids(page)).length === 3);
  await page.keyboard.press('/');
  assert.equal(await focused(), 'search-id');
  await page.keyboard.type('j/k');  // letters are letters there
  assert.equal(await page.inputValue('#search-id'), 'j/k');
  await page.keyboard.press('Escape');
  assert.notEqual(await focused(), 'search-id');
  await page.keyboard.press('?');
  await page.waitForSelector('dialog[open]');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog:not([open])', { state: 'attached' });
  await page.keyboard.press('g');
  await shows(page, 'the overview', async () => /Needs attention/.test(await text(page, 'main')));
  // Everything that can be clicked can be reached by Tab, in an order, and shows that it was.
  const reached = new Set();
  for (let i = 0; i < 40; i += 1) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const element = document.activeElement;
      return element === document.body ? null : [element.textContent.trim().slice(0, 30) || element.id, getComputedStyle(element).outlineStyle];
    });
    if (!at) continue;
    assert.notEqual(at[1], 'none', `${at[0]} shows no focus`);
    reached.add(at[0]);
  }
  for (const name of ['Overview', 'Operations', 'search-id', 'Sign out', 'create_ticket', 'Pause']) assert.ok(reached.has(name), `${name}: ${[...reached]}`);
});

story('it follows, it waits when nobody looks, and it says when the daemon is gone', async (w, open) => {
  const daemon = await withToken(w);
  const page = await open(daemon, { hash: '#/operations' });
  await live(page);
  await w.enqueue('first');
  await shows(page, 'the first', async () => (await ids(page)).includes('first'));
  // Hidden: not one request.
  await page.evaluate(() => { Object.defineProperty(document, 'hidden', { configurable: true, get: () => true }); document.dispatchEvent(new Event('visibilitychange')); });
  assert.equal(await text(page, '#live'), 'paused');
  let asked = 0;
  page.on('request', () => { asked += 1; });
  await sleep(5000);
  assert.equal(asked, 0);
  await page.evaluate(() => { delete document.hidden; document.dispatchEvent(new Event('visibilitychange')); });
  await live(page);
  assert.ok(asked > 0);
  // Gone: what was shown stays, with a word about it; back: it goes on by itself.
  await w.settled('first');
  await daemon.stop();
  await shows(page, 'it says so', async () => /cannot be reached/.test(await text(page, '#banner')));
  assert.ok((await ids(page)).includes('first'));
  assert.match(await text(page, '#live'), /retrying in \d+ s/);
  asked = 0;
  await sleep(6000);
  assert.ok(asked <= 8, `${asked} requests: it backs off`);
});

story('light and dark have contrast, and a phone has no sideways scrolling', async (w, open) => {
  await w.desk.plan('no', { posts: ['refuse'] });
  const daemon = await withToken(w);
  await unknown(w, 'refund-with-a-rather-long-id-that-does-not-fit-anywhere-at-all-0123456789-0123456789-0123456789');
  for (const id of ['a', 'no']) { await w.enqueue(id); await w.settled(id); }
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ('later', 'create_ticket', '{"title": "x"}', now() + interval '1 h')`);
  for (const colorScheme of ['light', 'dark']) {
    for (const hash of ['', '#/operations', operation('no')]) {
      const page = await open(daemon, { hash, colorScheme });
      await live(page);
      assert.deepEqual(await page.evaluate(poorContrast), [], `${colorScheme} ${hash}`);
      await page.setViewportSize({ width: 360, height: 740 });
      const [inner, wide] = await page.evaluate(() => [document.documentElement.clientWidth, document.documentElement.scrollWidth]);
      assert.ok(wide <= inner, `${hash}: ${wide} in ${inner}`);
      await page.context().close();
    }
  }
});

// Runs in the page: every visible text against what is behind it, by WCAG's formula; AA is 4.5.
function poorContrast() {
  const parse = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0.99) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll('body *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    const style = getComputedStyle(element);
    if (!own || style.visibility === 'hidden' || element.closest('.hidden, .skip, [hidden], dialog:not([open]), svg, noscript, #toast, option')) continue;
    const ground = behind(element);
    let opacity = 1;
    for (let at = element; at; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
    const [a, b] = [luminance(parse(style.color).slice(0, 3).map((c, i) => c * opacity + ground[i] * (1 - opacity))), luminance(ground)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) poor.push(`${element.textContent.trim().slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return [...new Set(poor)];
}
