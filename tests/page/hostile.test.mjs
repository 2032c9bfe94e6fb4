// The operator page in a real browser, under attack: markup in everything that others write, the
// policy, other sites, and names that somebody pointed here.
import assert from 'node:assert/strict';
import http from 'node:http';
import { ticketTool } from '../e2e/config.mjs';
import { sleep } from '../e2e/util.mjs';
import { openBrowser, token, withToken } from './browser.mjs';
import { ids, live, operation, shows, story, text } from './stories.mjs';

const markup = [
  '<img src=x onerror="window.pwned=1">', '"><script>window.pwned=1</script>', '<svg onload="window.pwned=1">', '\'"><b id=bold>', '{{7*7}}${7*7}', 'javascript:window.pwned=1',
  '</pre></code></textarea></title><script>window.pwned=1</script>', '\u202Edlrow\u202C \u2066x\u2069', '&lt;b&gt;', '__proto__',
];

story('what others wrote is text: in ids, tools, runs, labels, arguments, results, errors, reasons and events', async (w, open) => {
  const odd = '<i onclick="window.pwned=1">tool</i>';
  const daemon = await withToken(w, { tools: { create_ticket: ticketTool(w.desk.url, { description: markup[0], arguments: { type: 'object' } }) } });
  for (const [i, evil] of markup.entries()) {
    await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, labels, run_at) VALUES ($1, 'create_ticket', jsonb_build_object('title', $1::text, $1::text, $1::text), $1, jsonb_build_object($1::text, $1::text), now() + interval '1 h')`, [evil]);
    await w.db.query(`INSERT INTO outbox.event (operation_id, kind, actor, detail) VALUES ($1, 'retried', $1, jsonb_build_object('reason', $1::text, 'code', $1::text, $1::text, $1::text))`, [evil]);
    await w.db.query(`WITH gone AS (DELETE FROM outbox.queue q USING outbox.operation o WHERE o.seq = q.seq AND o.operation_id = $1 RETURNING q.seq)
       INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, result, error, attention)
       SELECT seq, $2, 1, 1, CASE WHEN $2 = 'succeeded' THEN jsonb_build_object('r', $1::text) END, jsonb_build_object('code', $1::text, 'message', $1::text), 'manual' FROM gone`, [evil, i % 2 ? 'failed' : 'cancelled']);
  }
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('of an odd tool', $1, now() + interval '1 h')`, [odd]);
  await w.db.query(`UPDATE outbox.tool SET paused_at = now(), paused_reason = $1 WHERE tool = 'create_ticket'`, [markup[1]]);
  await w.db.query(`UPDATE outbox.worker SET name = $1`, [markup[2]]);
  const page = await open(daemon);
  const clean = async (where) => {
    await live(page);
    assert.equal(await page.evaluate(() => window.pwned), undefined, where);
    const found = await page.evaluate(() => document.querySelectorAll('main script, main img, main [onerror], main [onload], main [onclick], #bold, main iframe, main [style], main i').length);
    assert.equal(found, 0, where);
    const links = await page.evaluate(() => [...document.querySelectorAll('main a')].map((a) => a.getAttribute('href')).filter((href) => !href.startsWith('#/')));
    assert.deepEqual(links, [], where);
  };
  await live(page);
  assert.ok((await text(page, 'main')).includes(odd));
  assert.ok((await text(page, 'main')).includes(markup[1]));
  assert.ok((await text(page, 'main')).includes(markup[2]));
  await clean('overview');
  await page.goto(`${page.url0}#/operations`);
  await shows(page, 'all rows', async () => (await ids(page)).length === markup.length + 1);
  assert.ok((await text(page, 'main')).includes(markup[0]));
  await clean('list');
  for (const evil of markup) {
    await page.goto(`${page.url0}${operation(evil)}`);
    await shows(page, evil, async () => (await page.locator('h1.id').count()) === 1 && (await page.locator('h1.id').textContent()).startsWith(evil));
    await page.evaluate(() => { for (const one of document.querySelectorAll('details')) one.open = true; });
    await clean(evil);
    assert.equal(await page.title(), `${evil} · outboxd`.replace(/\s+/g, ' '));
    await page.click('[data-act="acknowledge"]');
    await page.waitForSelector('dialog[open]');
    assert.ok((await page.locator('dialog').textContent()).includes(evil));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    await page.click('dialog [data-close]');
  }
});

story('the policy stops what is not ours: inline script and style, other origins, frames', async (w, open) => {
  const daemon = await withToken(w);
  const page = await open(daemon);
  await live(page);
  const blocked = await page.evaluate(async () => {
    const violations = [];
    document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
    const script = document.createElement('script');
    try { script.textContent = 'window.pwned = 1'; document.head.append(script); } catch { violations.push('trusted types'); }
    const tried = {};
    try { document.body.innerHTML += '<p>x</p>'; } catch (error) { tried.html = error.name; }
    try { await fetch('http://127.0.0.1:9/'); } catch (error) { tried.fetch = error.name; }
    const styled = document.createElement('p');
    styled.setAttribute('style', 'color: rgb(1, 2, 3)');
    document.body.append(styled);
    tried.style = getComputedStyle(styled).color;
    const image = new Image();
    image.src = 'http://127.0.0.1:9/x.png';
    await new Promise((resolve) => { setTimeout(resolve, 300); });
    return { violations: [...new Set(violations)].sort(), tried, pwned: window.pwned };
  });
  assert.equal(blocked.pwned, undefined);
  assert.deepEqual([blocked.tried.html, blocked.tried.fetch], ['TypeError', 'TypeError']);
  assert.notEqual(blocked.tried.style, 'rgb(1, 2, 3)');
  for (const directive of ['connect-src', 'img-src', 'style-src-attr']) assert.ok(blocked.violations.includes(directive), `${directive}: ${blocked.violations}`);

  // In a frame of another site it does not show.
  const other = await serve(`<iframe src="http://127.0.0.1:${daemon.port}/"></iframe>`);
  try {
    const frame = await open({ port: other.port }, { signedIn: false });
    await sleep(500);
    const inner = frame.frames().find((one) => one !== frame.mainFrame());
    assert.equal(await inner.locator('#main').count().catch(() => 0), 0);
  } finally {
    other.close();
  }
}, { faults: [/Content Security Policy|TrustedScript|Trusted|require-trusted-types|Refused|violates|request: /] });

// A page of somebody else, on another port: another origin.
function serve(html) {
  return new Promise((resolve) => {
    const server = http.createServer((request, response) => { response.writeHead(200, { 'Content-Type': 'text/html' }); response.end(html); });
    server.listen(0, '127.0.0.1', () => resolve({ port: server.address().port, close: () => server.close() }));
  });
}

story('another site cannot steer, whether it knows the token or not', async (w, open) => {
  const daemon = await withToken(w);
  const target = `http://127.0.0.1:${daemon.port}/api/v1/tools/create_ticket/pause`;
  const other = await serve(`<form id=f method=post enctype="text/plain" action="${target}"><input name='{"reason": "' value='"}'></form>`);
  const page = await open({ port: other.port }, { signedIn: false });
  try {
    // The form that needs no permission: the browser sends it, the daemon refuses it.
    const [answer] = await Promise.all([page.waitForNavigation(), page.evaluate(() => document.getElementById('f').submit())]);
    assert.equal(answer.url(), target);
    assert.ok([401, 403, 415].includes(answer.status()), `${answer.status()}`);
    await page.goto(`http://127.0.0.1:${other.port}/`);
    const tried = await page.evaluate(async ([url, secret]) => {
      const results = {};
      const attempt = async (name, options) => {
        try { results[name] = (await fetch(url, options)).status; } catch (error) { results[name] = error.name; }
      };
      await attempt('json', { method: 'POST', headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${secret}` }, body: '{"reason": "x"}' });
      await attempt('plain', { method: 'POST', body: '{"reason": "x"}', mode: 'no-cors' });
      await attempt('read', { headers: { Authorization: `Bearer ${secret}` } });
      return results;
    }, [target, token]);
    assert.equal(tried.json, 'TypeError', 'no preflight is answered');
    assert.equal(tried.read, 'TypeError');
    const tool = await w.one(`SELECT paused_at FROM outbox.tool WHERE tool = 'create_ticket'`);
    assert.equal(tool.paused_at, null);
  } finally {
    other.close();
  }
}, { faults: [/request: |CORS policy/] });

story('a name that somebody pointed here gets nothing', async (w, open) => {
  const daemon = await withToken(w);
  const rebound = await openBrowserFor(`rebound.example:${daemon.port}`, daemon);
  try {
    const answer = await rebound.page.goto(`http://rebound.example:${daemon.port}/`);
    assert.equal(answer.status(), 421);
    assert.equal((await rebound.page.goto(`http://rebound.example:${daemon.port}/api/v1/operations`)).status(), 421);
    assert.equal(await rebound.page.locator('#main').count(), 0);
  } finally {
    await rebound.browser.close();
  }
});

// A browser that believes that the name is this machine, as after a rebinding.
async function openBrowserFor(host) {
  const other = await openBrowser([`--host-resolver-rules=MAP ${host.split(':')[0]} 127.0.0.1`]);
  return { browser: other, page: await (await other.newContext()).newPage() };
}
