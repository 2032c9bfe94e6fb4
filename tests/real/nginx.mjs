// nginx before a service: TLS, client certificates, keep-alive, gzip. One process that we started, and
// a log of ours: connection, request on it, method, path, status, what it thought of the certificate.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { Program, eventually, freePort } from '../e2e/util.mjs';

const program = ['/usr/sbin/nginx', '/usr/bin/nginx'].find((file) => existsSync(file)) ?? 'nginx';

export class Nginx {
  static #count = 0;

  static async start(dir, { cert, key, clientCa, upstream, keepalive = '30s' }) {
    const nginx = new Nginx();
    nginx.dir = path.join(dir, `nginx-${++Nginx.#count}`);
    mkdirSync(nginx.dir);
    chmodSync(dir, 0o711);
    nginx.port = await freePort();
    const file = path.join(nginx.dir, 'nginx.conf');
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${nginx.dir}/${name};`).join(' ');
    writeFileSync(file, `${process.getuid() === 0 ? 'user root;' : ''}
daemon off;
worker_processes 2;
pid ${nginx.dir}/pid;
error_log ${nginx.dir}/error.log;
events { worker_connections 256; }
http {
  ${temporary}
  log_format calls '$connection $connection_requests $request_method $request_uri $status $ssl_client_verify $gzip_ratio $ssl_protocol';
  access_log ${nginx.dir}/access.log calls;
  gzip on; gzip_types application/json; gzip_min_length 1; gzip_proxied any;
  keepalive_timeout ${keepalive};
  server {
    listen 127.0.0.1:${nginx.port} ssl;
    ssl_certificate ${cert};
    ssl_certificate_key ${key};
    ssl_protocols TLSv1.2 TLSv1.3;
    ${clientCa ? `ssl_client_certificate ${clientCa}; ssl_verify_client on;` : ''}
    location / {
      proxy_pass ${upstream};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
    }
  }
}
`);
    nginx.program = new Program(program, ['-p', nginx.dir, '-c', file]);
    nginx.url = `https://localhost:${nginx.port}`;
    await eventually('nginx listens', () => {
      if (nginx.program.ended) throw new Error(nginx.program.output);
      return new Promise((resolve, reject) => {
        const socket = net.connect(nginx.port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
        socket.on('error', reject);
      });
    }, 30_000);
    return nginx;
  }

  // Its worker processes are replaced; the old ones finish what they have and close their connections.
  reload() { process.kill(this.program.pid, 'SIGHUP'); }

  get calls() {
    const file = path.join(this.dir, 'access.log');
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => {
      const [connection, request, method, uri, status, verify, gzip, protocol] = line.split(' ');
      return { connection, request: Number(request), method, uri, status: Number(status), verify, gzip, protocol };
    });
  }

  get errors() { return readFileSync(path.join(this.dir, 'error.log'), 'utf8'); }

  stop() { return this.program.stop('SIGTERM'); }
}
