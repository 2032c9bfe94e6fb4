// The page of a daemon with several databases: one at a time, chosen by name, and the address says which.
import assert from 'node:assert/strict';
import { twoDatabases } from '../e2e/second_source.mjs';
import { unknown, withToken } from './browser.mjs';
import { dialog, ids, live, operation, shows, story, text } from './stories.mjs';

const choice = '#source';

story('two databases: the page names them, shows one, changes between them and steers where it says', async (w, open) => {
  const support = await twoDatabases(w);
  try {
    const daemon = await withToken(w, { database: support.database });
    const later = `INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ($1, 'create_ticket', '{"title": "x"}', now() + interval '1 day')`;
    for (const db of [w.db, support.db]) await db.query(later, ['same']);
    await w.db.query(later, ['of orders']);
    await support.db.query(later, ['of support']);
    await unknown(support, 'refund-1');

    // Opened without a name: the first, and the address says so.
    const page = await open(daemon);
    await shows(page, 'the first database', async () => page.url().includes('?source=orders'));
    await live(page);
    assert.equal(await page.locator(choice).isVisible(), true);
    assert.deepEqual(await page.locator(`${choice} option`).allInnerTexts(), ['orders', 'support']);
    assert.equal(await page.inputValue(choice), 'orders');
    assert.match(await text(page, '.card[data-key="attention"]'), /Needs attention\s+0\s/);
    await page.keyboard.press('o');
    await shows(page, 'its rows', async () => (await ids(page)).join() === 'of orders,same');

    // The other one: the same view, and nothing of the first.
    await page.selectOption(choice, 'support');
    await shows(page, 'the rows of the other', async () => (await ids(page)).join() === 'refund-1,of support,same');
    assert.match(page.url(), /\?source=support#\/operations$/);
    await page.click('text=same');
    await shows(page, 'its story', async () => /same/.test(await text(page, 'main h1')));
    assert.match(page.url(), /\?source=support#\/operation\/same$/, 'a link can be passed on');
    await page.click('main [data-act="cancel"]');
    await dialog(page, { reason: 'not needed' }, 'Cancel');
    await shows(page, 'it is cancelled', async () => (await support.one(`SELECT status FROM outbox.get('same')`)).status === 'cancelled');
    assert.equal((await w.one(`SELECT status FROM outbox.get('same')`)).status, 'scheduled', 'the one of the same id in the other is not');

    // From a story one goes to the other's overview: the id means something else there.
    await page.selectOption(choice, 'orders');
    await shows(page, 'the overview of the other', async () => page.url().endsWith('?source=orders#/'));
    await live(page);

    // Straight to a story by its address.
    const linked = await open(daemon, { hash: `?source=support${operation('of support')}` });
    await shows(linked, 'the story', async () => /of support/.test(await text(linked, 'main h1')));
    assert.equal(await linked.inputValue(choice), 'support');
  } finally {
    await support.db.end();
  }
});

story('a name that is not served is said, not taken for another; the choice is the way out', async (w, open) => {
  const support = await twoDatabases(w);
  try {
    const daemon = await withToken(w, { database: support.database });
    const page = await open(daemon, { hash: '?source=sales<b>' });
    await shows(page, 'it says so', async () => /no source of that name/.test(await text(page, '#banner')));
    assert.match((await page.locator(`${choice} option`).allInnerTexts())[0], /^sales<b>: not served here$/);
    await page.selectOption(choice, 'support');
    await shows(page, 'it is there', async () => page.url().endsWith('?source=support#/'));
    await live(page);
  } finally {
    await support.db.end();
  }
});

story('one database: nothing to choose', async (w, open) => {
  const page = await open(await withToken(w));
  await live(page);
  assert.equal(await page.locator(choice).isVisible(), false);
  assert.equal(new URL(page.url()).search, '');
});
