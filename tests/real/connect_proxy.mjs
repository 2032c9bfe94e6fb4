// A proxy that knows where the names of the world are: CONNECT api.stripe.com:443 leads to a port of
// ours. So a tool's file is used as it is, with its real addresses and real checks of names and
// certificates. No name is ever looked up and nothing leaves loopback.
import http from 'node:http';
import net from 'node:net';

export class ConnectProxy {
  tunnels = new Map();  // name → connections so far
  refused = [];
  #ports = new Map();
  #cuts = new Map();
  #sockets = new Set();

  static async start() {
    const proxy = new ConnectProxy();
    proxy.server = http.createServer((request, response) => { response.writeHead(405); response.end(); });
    proxy.server.on('connect', (request, socket, head) => proxy.#connect(request, socket, head));
    proxy.server.on('connection', (socket) => proxy.#keep(socket));
    await new Promise((resolve) => proxy.server.listen(0, '127.0.0.1', resolve));
    proxy.url = `http://127.0.0.1:${proxy.server.address().port}`;
    return proxy;
  }

  route(name, port) { this.#ports.set(`${name}:443`, port); }

  // Asked before anything is handed back from there; at the first yes the tunnel breaks instead.
  cutWhen(name, condition) { this.#cuts.set(`${name}:443`, condition); }

  #connect(request, socket, head) {
    const port = this.#ports.get(request.url);
    socket.on('error', () => socket.destroy());
    if (!port) {
      this.refused.push(request.url);
      return socket.end('HTTP/1.1 502 no such name here\r\nContent-Length: 0\r\n\r\n');
    }
    this.tunnels.set(request.url, (this.tunnels.get(request.url) ?? 0) + 1);
    const other = this.#keep(net.connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 go on\r\n\r\n');
      if (head.length) other.write(head);
      socket.pipe(other);
      other.on('data', (data) => {
        if (!this.#cuts.get(request.url)?.()) return socket.write(data);
        this.#cuts.delete(request.url);
        return socket.destroy();
      });
    }));
    other.on('error', () => socket.destroy());
    other.on('close', () => socket.destroy());
    socket.on('close', () => other.destroy());
  }

  #keep(socket) {
    this.#sockets.add(socket);
    socket.on('close', () => this.#sockets.delete(socket));
    return socket;
  }

  stop() {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
