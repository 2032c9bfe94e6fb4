// TLS is verified: a certificate of our own authority is trusted only where the file says so.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import path from 'node:path';
import { ticketTool } from './config.mjs';
import { story } from './world.mjs';
import { eventually } from './util.mjs';

function certificates(w, name = 'localhost') {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: w.dir, stdio: 'pipe' });
  const at = (file) => path.join(w.dir, file);
  openssl('req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=e2e authority', '-keyout', 'ca.key', '-out', 'ca.pem');
  openssl('req', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', `/CN=${name}`,
    '-keyout', 'desk.key', '-out', 'desk.csr');
  w.write('san', `subjectAltName=DNS:${name}\n`);
  openssl('x509', '-req', '-in', 'desk.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
    '-extfile', 'san', '-out', 'desk.pem');
  return { ca: at('ca.pem'), tls: [at('desk.pem'), at('desk.key')] };
}

story('a tool over TLS with an authority of its own', async (w) => {
  const { ca, tls } = certificates(w);
  const desk = await w.startDesk({ tls });
  await w.start({ tools: { create_ticket: ticketTool(desk.url, { http: { ca_file: ca } }) } });
  for (const id of ['a', 'b', 'c']) await w.enqueue(id);
  await desk.plan('cut', { posts: ['cut'] });
  await w.enqueue('cut');
  for (const id of ['a', 'b', 'c', 'cut']) assert.equal((await w.settled(id)).status, 'succeeded', id);
  assert.equal((await desk.state()).tickets.length, 4);
});

for (const [what, name, trusted] of [['an unknown authority', 'localhost', false], ['the wrong name', 'elsewhere.example', true]]) {
  story(`a certificate with ${what}: not a byte of the request leaves`, async (w) => {
    const { ca, tls } = certificates(w, name);
    const desk = await w.startDesk({ tls });
    await w.start({ tools: { create_ticket: ticketTool(desk.url, { http: trusted ? { ca_file: ca } : {} }) } });
    await w.enqueue('spied');
    await eventually('it is tried again', async () => (await w.events('spied', 'retry')).length >= 2);
    assert.equal((await desk.state()).requests.length, 0);
    const kinds = await w.events('spied');
    assert.ok(!kinds.includes('unknown'), `${kinds}`);
    assert.equal((await w.get('spied')).attempts, 0, 'not sent gives the attempt back');
  });
}
