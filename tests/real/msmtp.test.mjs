// What config/cookbook/smtp_mail.yaml makes of msmtp's exit codes, held against msmtp itself and a
// server that refuses, breaks off or falls silent at every step: a code that the file calls rejected or
// retry is never given once the whole mail was handed over, nor one that it calls succeeded before.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { run } from '../e2e/util.mjs';
import { folder } from './cookbook.mjs';

// The server's answers by command; two for RCPT: the recipient and the archive. `cut` breaks off,
// `silent` says nothing; what is left out is agreed to.
const servers = {
  'all is well': {},
  'greeting 421': { greeting: '421 busy' },
  'greeting 554': { greeting: '554 go away' },
  'greeting cut': { greeting: 'cut' },
  'EHLO cut': { EHLO: 'cut' },
  'AUTH 535': { AUTH: '535 wrong' },
  'AUTH 454': { AUTH: '454 not now' },
  'MAIL 550': { MAIL: '550 not you' },
  'MAIL 451': { MAIL: '451 not now' },
  'RCPT 550': { RCPT: ['550 no such user'] },
  'RCPT 450': { RCPT: ['450 not now'] },
  'RCPT of the archive 550': { RCPT: ['250 fine', '550 no such user'] },
  'RCPT of the archive 450': { RCPT: ['250 fine', '450 not now'] },
  'RCPT cut': { RCPT: ['cut'] },
  'DATA 554': { DATA: '554 no' },
  'DATA cut': { DATA: 'cut' },
  'last dot 554': { dot: '554 spam' },
  'last dot 451': { dot: '451 not now' },
  'last dot cut': { dot: 'cut' },
  'last dot silent': { dot: 'silent' },
  'last dot nonsense': { dot: '\xff\0' },
  'a name that nobody has': { host: `${'x'.repeat(64)}.invalid` },  // too long a label: nobody has to be asked
  'a port where nobody listens': { port: 1 },
};

function listen(script) {
  const seen = { whole: false, refused: false };
  const server = net.createServer((socket) => {
    socket.on('error', () => {});
    const answer = (text) => {
      if (text === 'cut') socket.destroy();
      else if (text !== 'silent') socket.write(`${text}\r\n`);
    };
    let rest = '';
    let data = false;
    answer(script.greeting ?? '220 here');
    socket.on('data', (bytes) => {
      rest += bytes;
      for (let end = rest.indexOf('\r\n'); end >= 0; end = rest.indexOf('\r\n')) {
        const line = rest.slice(0, end);
        rest = rest.slice(end + 2);
        const command = line.split(/[ :]/)[0].toUpperCase();
        if (data) {
          if (line !== '.') continue;
          data = false;
          seen.whole = true;
          seen.refused = /^[45]/.test(script.dot ?? '');
          answer(script.dot ?? '250 taken');
        } else if (command === 'DATA') {
          data = !script.DATA;
          answer(script.DATA ?? '354 go on');
        } else if (command === 'RCPT') {
          answer(script.RCPT?.[line.includes('archive') ? 1 : 0] ?? '250 fine');
        } else {
          answer(script[command] ?? (command === 'EHLO' ? '250-here\r\n250 AUTH PLAIN' : '250 fine'));
        }
      }
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve({ server, seen })));
}

// exit_codes of the file, read as it stands there.
function exitCodes() {
  const text = readFileSync(path.join(folder, 'smtp_mail.yaml'), 'utf8');
  const block = /exit_codes:\n((?: +(?:\d+|default): \w+.*\n)+)/.exec(text)[1];
  return Object.fromEntries([...block.matchAll(/(\d+|default): (\w+)/g)].map(([, code, then]) => [code, then]));
}

test('msmtp: what its exit codes say about the mail is what the cookbook takes them for', { timeout: 60_000 }, async () => {
  const codes = exitCodes();
  assert.equal(codes.default, 'unknown');
  const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-msmtp-'));
  const met = new Set();
  try {
    for (const [name, script] of Object.entries(servers)) {
      const { server, seen } = await listen(script);
      const file = path.join(dir, 'msmtprc');
      writeFileSync(file, `account default\nhost ${script.host ?? '127.0.0.1'}\nport ${script.port ?? server.address().port}\ntls off\ntimeout 1\n`
        + (script.AUTH ? 'auth plain\nuser bot\npassword x\n' : 'auth off\n'), { mode: 0o600 });
      const { code, text } = await run('/usr/bin/msmtp', [`--file=${file}`, '--from=bot@example.com', '--', 'ada@example.org', 'archive@example.com'],
        { input: 'Subject: x\n\nhello\n' });
      server.close();
      const then = codes[code] ?? codes.default;
      const context = `${name}: exit ${code}, ${then}; ${text}`;
      met.add(`${code} ${then}`);
      if (seen.whole && !script.dot) assert.equal(then, 'succeeded', context);
      else if (seen.whole && !seen.refused) assert.equal(then, 'unknown', context);
      else assert.ok(['rejected', 'retry', 'unknown'].includes(then), context);
    }
    // The codes of the file that msmtp really gives.
    for (const one of ['0 succeeded', '65 rejected', '68 retry', '77 retry', '76 unknown', '75 unknown', '69 unknown']) assert.ok(met.has(one), `${one}: ${[...met]}`);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
