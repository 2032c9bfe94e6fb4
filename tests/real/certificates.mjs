// An authority of our own, and what it signs: servers by name, clients, good and bad ones.
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export class Authority {
  #serial = 0;

  constructor(dir, name = 'authority') {
    this.dir = path.join(dir, name);
    mkdirSync(this.dir, { recursive: true });
    chmodSync(this.dir, 0o755);
    this.#openssl('req', '-x509', ...kKey, '-days', '2', '-subj', `/CN=${name}`, '-keyout', 'ca.key', '-out', 'ca.pem');
    this.file = path.join(this.dir, 'ca.pem');
  }

  // {cert, key}, files of a certificate for these names; `days` may lie in the past.
  issue(names, { usage = 'serverAuth', from, to } = {}) {
    const n = ++this.#serial;
    const at = (end) => `${n}.${end}`;
    this.#openssl('req', ...kKey, '-subj', `/CN=${names[0]}`, '-keyout', at('key'), '-out', at('csr'));
    writeFileSync(path.join(this.dir, at('ext')),
      `subjectAltName=${names.map((name) => `${/^[\d.]+$/.test(name) ? 'IP' : 'DNS'}:${name}`).join(',')}\nextendedKeyUsage=${usage}\n`);
    if (from) {
      // `x509 -req` cannot give a certificate dates; `ca` can.
      writeFileSync(path.join(this.dir, 'index.txt'), '');
      writeFileSync(path.join(this.dir, 'ca.cnf'), `[ca]\ndefault_ca = d\n[d]\ndatabase = index.txt\nnew_certs_dir = .\nrand_serial = yes\n`
        + `default_md = sha256\npolicy = p\nunique_subject = no\n[p]\ncommonName = supplied\n`);
      this.#openssl('ca', '-batch', '-config', 'ca.cnf', '-notext', '-in', at('csr'), '-cert', 'ca.pem', '-keyfile', 'ca.key',
        '-startdate', from, '-enddate', to, '-extfile', at('ext'), '-out', at('pem'));
    } else {
      this.#openssl('x509', '-req', '-in', at('csr'), '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', at('ext'), '-out', at('pem'));
    }
    const file = (end) => path.join(this.dir, at(end));
    chmodSync(file('key'), 0o644);  // servers that run as somebody else read it
    return { cert: file('pem'), key: file('key') };
  }

  #openssl(...args) { execFileSync('openssl', args, { cwd: this.dir, stdio: 'pipe' }); }
}

const kKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
