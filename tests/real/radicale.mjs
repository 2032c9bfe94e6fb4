// Radicale, a CalDAV server that others wrote, as a process of its own with TLS, passwords and one
// calendar. What it keeps is read from its folder: one file per event.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import path from 'node:path';
import { Program, eventually, freePort } from '../e2e/util.mjs';

export class Radicale {
  static async start(dir, { cert, key }, { user = 'bot', password }) {
    const server = new Radicale();
    server.dir = path.join(dir, 'radicale');
    server.calendar = path.join(server.dir, 'collection-root', user, 'calendar');
    mkdirSync(server.calendar, { recursive: true });
    writeFileSync(path.join(server.calendar, '.Radicale.props'), '{"tag": "VCALENDAR"}');
    writeFileSync(path.join(server.dir, 'users'), `${user}:${password}\n`);
    server.port = await freePort();
    writeFileSync(path.join(server.dir, 'config'), `[server]
hosts = 127.0.0.1:${server.port}
ssl = True
certificate = ${cert}
key = ${key}
[auth]
type = htpasswd
htpasswd_filename = ${path.join(server.dir, 'users')}
htpasswd_encryption = plain
delay = 0
[rights]
type = owner_only
[storage]
filesystem_folder = ${server.dir}
[logging]
level = info
`);
    if (!existsSync('/usr/bin/radicale')) throw new Error('no Radicale here; ./dev test installs it (package radicale)');
    server.program = new Program('/usr/bin/radicale', ['--config', path.join(server.dir, 'config')]);
    await eventually('Radicale answers', async () => {
      if (server.program.ended) throw new Error(server.program.output);
      return (await server.ask('GET', '/')).status > 0;
    });
    return server;
  }

  // As anybody, without looking at the certificate.
  ask(method, target, { headers = {}, body = '' } = {}) {
    return new Promise((resolve, reject) => {
      const request = https.request({ host: '127.0.0.1', port: this.port, method, path: target, headers, rejectUnauthorized: false, agent: false }, (response) => {
        let text = '';
        response.on('data', (data) => { text += data; }).on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }));
      });
      request.on('error', reject).end(body);
    });
  }

  // What is in the calendar: [{name, text}].
  events() {
    return readdirSync(this.calendar).filter((name) => name.endsWith('.ics'))
      .map((name) => ({ name, text: readFileSync(path.join(this.calendar, name), 'utf8') }));
  }

  effects(title) { return this.events().filter((event) => event.text.includes(`SUMMARY:${title}\r\n`) || event.text.includes(`SUMMARY:${title}\n`)); }

  // Requests that would create, by Radicale's own log.
  get puts() { return (this.program.output.match(/PUT request for/g) ?? []).length; }

  stop() { return this.program.stop('SIGKILL'); }
}
