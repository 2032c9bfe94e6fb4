// Mail through programs that others wrote: msmtp speaks SMTP to aiosmtpd, which delivers into a Maildir,
// and Dovecot shows that mailbox over IMAP with TLS. Before the SMTP server stands a gate that can lose
// the answer to the last dot.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync, chmodSync, chownSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { Program, eventually, freePort } from '../e2e/util.mjs';

export class Mail {
  dots = 0;  // mails whose last dot went to the server
  lose = 0;  // that many answers to the last dot will be lost
  #sockets = new Set();

  static async start(dir, authority, { user = 'bot', password }) {
    const mail = new Mail();
    mail.dir = path.join(dir, 'mail');
    mkdirSync(mail.dir);
    chmodSync(dir, 0o711);  // nobody passes through
    await mail.#server();
    await mail.#gate();
    await mail.#mailbox(authority, user, password);
    const write = (name, text) => { writeFileSync(path.join(mail.dir, name), text, { mode: 0o600 }); return path.join(mail.dir, name); };
    // What config/cookbook/smtp_mail.yaml reads from the environment.
    mail.env = {
      MSMTPRC: write('msmtprc', `account default\nhost 127.0.0.1\nport ${mail.gate.address().port}\nauth off\ntls off\ntimeout 20\n`),
      NETRC: write('netrc', `machine 127.0.0.1 login ${user} password ${password}\n`),
      IMAP_HOST: `127.0.0.1:${mail.imap}`, IMAP_CA: authority.file,
    };
    return mail;
  }

  // As root, both servers give up their rights to nobody, and Dovecot insists on it.
  async #server() {
    const folders = [this.dir, ...['', 'new', 'cur', 'tmp'].map((name) => path.join(this.dir, 'Maildir', name))];
    for (const folder of folders) mkdirSync(folder, { recursive: true });
    if (process.getuid() === 0) {
      const nobody = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'nobody'])));
      for (const folder of folders) chownSync(folder, ...nobody);
    }
    this.smtp = await freePort();
    this.aiosmtpd = new Program('/usr/bin/aiosmtpd',
      [...(process.getuid() === 0 ? [] : ['-n']), '-l', `127.0.0.1:${this.smtp}`, '-c', 'aiosmtpd.handlers.Mailbox', path.join(this.dir, 'Maildir')]);
    await eventually('aiosmtpd greets', () => greeted(this.smtp, this.aiosmtpd), 30_000);
  }

  async #gate() {
    this.gate = net.createServer((client) => {
      const server = net.connect(this.smtp, '127.0.0.1');
      let tail = '';
      let losing = false;
      for (const [one, other] of [[client, server], [server, client]]) {
        this.#sockets.add(one);
        one.on('error', () => {});
        one.on('close', () => { this.#sockets.delete(one); other.destroy(); });
      }
      client.on('data', (data) => {
        tail = (tail + data.toString('latin1')).slice(-5);
        if (tail === '\r\n.\r\n') {
          ++this.dots;
          if (this.lose > 0) { --this.lose; losing = true; }
        }
        server.write(data);
      });
      server.on('data', (data) => (losing ? client.destroy() : client.write(data)));
    });
    await new Promise((resolve) => this.gate.listen(0, '127.0.0.1', resolve));
  }

  async #mailbox(authority, user, password) {
    if (!existsSync('/usr/sbin/dovecot')) throw new Error('no Dovecot here; ./dev test installs it (package dovecot-imapd)');
    const { cert, key } = authority.issue(['127.0.0.1']);
    for (const name of ['run', 'state']) mkdirSync(path.join(this.dir, name));
    chmodSync(this.dir, 0o755);
    this.imap = await freePort();
    const file = path.join(this.dir, 'dovecot.conf');
    const [uid, gid] = process.getuid() === 0 ? ['nobody', 'nogroup'] : [process.getuid(), process.getgid()];
    const name = os.userInfo().username;
    // Debian 13's 2.4 has other words for the same.
    const modern = /^2\.[4-9]/.test(execFileSync('/usr/sbin/dovecot', ['--version']).toString());
    const words = modern ? `ssl_server_cert_file = ${cert}
ssl_server_key_file = ${key}
mail_driver = maildir
mail_path = ${this.dir}/Maildir
passdb static {
  password = ${password}
}
userdb static {
  fields {
    uid = ${uid}
    gid = ${gid}
    home = ${this.dir}
  }
}` : `ssl_cert = <${cert}
ssl_key = <${key}
mail_location = maildir:${this.dir}/Maildir
passdb {
  driver = static
  args = password=${password}
}
userdb {
  driver = static
  args = uid=${uid} gid=${gid} home=${this.dir}
}`;
    writeFileSync(file, `${modern ? 'dovecot_config_version = 2.4.0\ndovecot_storage_version = 2.4.0\n' : ''}protocols = imap
listen = 127.0.0.1
base_dir = ${this.dir}/run
state_dir = ${this.dir}/state
log_path = ${this.dir}/dovecot.log
ssl = required
first_valid_uid = 1
${words}
service imap-login {
  inet_listener imap {
    port = 0
  }
  inet_listener imaps {
    port = ${this.imap}
  }
}
${process.getuid() === 0 ? '' : `default_internal_user = ${name}
default_login_user = ${name}
default_internal_group = ${execFileSync('id', ['-gn']).toString().trim()}
service anvil {
  chroot =
}
service imap-login {
  chroot =
}
`}`);
    this.dovecot = new Program('/usr/sbin/dovecot', ['-F', '-c', file]);
    await eventually('Dovecot listens', () => greeted(this.imap, this.dovecot), 30_000);
  }

  get #mails() {
    const at = path.join(this.dir, 'Maildir');
    return ['new', 'cur'].flatMap((name) => (existsSync(path.join(at, name)) ? readdirSync(path.join(at, name)).map((file) => path.join(at, name, file)) : []))
      .map((file) => readFileSync(file, 'utf8'));
  }

  // Mails in the mailbox whose subject is this, by its encoded word.
  effects(subject) { return this.#mails.filter((text) => text.includes(Buffer.from(subject).toString('base64'))); }

  get log() { return existsSync(path.join(this.dir, 'dovecot.log')) ? readFileSync(path.join(this.dir, 'dovecot.log'), 'utf8') : ''; }

  async stop() {
    this.gate?.close();
    for (const socket of this.#sockets) socket.destroy();
    await this.aiosmtpd?.stop('SIGKILL');
    await this.dovecot?.stop('SIGTERM');  // it ends its own children
  }
}

// Somebody accepts there.
async function greeted(port, program) {
  if (program.ended) throw new Error(`it ended: ${program.output.slice(-1000)}`);
  return new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
    socket.on('error', reject);
  });
}
