// A daemon that starts while its database recovers.
import assert from 'node:assert/strict';
import net from 'node:net';
import { story } from './world.mjs';
import { freePort } from './util.mjs';

// What Postgres answers from its start until it is consistent: SQLSTATE 57P03.
function notYet() {
  const fields = Buffer.from(['SFATAL', 'VFATAL', 'C57P03', 'Mthe database system is starting up'].map((f) => `${f}\0`).join('') + '\0');
  const head = Buffer.alloc(5);
  head.write('E');
  head.writeInt32BE(4 + fields.length, 1);
  return Buffer.concat([head, fields]);
}

story('a server that says it is starting up is waited for, longer than one that is not there', async (w) => {
  await w.migrate();
  const port = await freePort();
  let recovering = true;
  let refused = 0;
  const front = net.createServer((socket) => {
    socket.on('error', () => {});
    if (recovering) {
      refused++;
      socket.once('data', () => socket.end(notYet()));
      return;
    }
    const server = net.connect(w.cluster.port, '127.0.0.1');
    server.on('error', () => socket.destroy());
    socket.pipe(server).pipe(socket);
  }).listen(port, '127.0.0.1');
  const name = /dbname=(\S+)/.exec(w.dsn)[1];
  const dsn = `host=127.0.0.1 port=${port} user=postgres dbname=${name} sslmode=disable gssencmode=disable`;
  try {
    const daemon = await w.launch({ env: { ...w.env, OUTBOXD_DATABASE: dsn } });
    await new Promise((resolve) => setTimeout(resolve, 12_500));  // more than what an absent server is given
    assert.equal(daemon.ended, null, daemon.log);
    assert.ok(refused > 3, `asked ${refused} times`);
    recovering = false;
    await daemon.ready();
    await w.enqueue('started');
    await w.settled('started');
    await daemon.stop();
  } finally {
    front.close();
  }
});
