// Providers where the name of the thing is ours: the second of that name is refused.
import { Refusal, authorized } from './server.mjs';

// developers.google.com/calendar/api/v3/reference/events/insert
export class GoogleCalendar {
  hosts = ['www.googleapis.com'];
  events = new Map();

  constructor({ secret }) { this.secret = secret; }

  handle(request) {
    authorized(request, `Bearer ${this.secret}`);
    const [, id] = /^\/calendar\/v3\/calendars\/team%40example\.com\/events(?:\/([^/]+))?$/.exec(request.path) ?? [];
    const error = (code, reason, message) => new Refusal(code, { error: { code, message, errors: [{ domain: 'global', reason, message }] } });
    if (request.method === 'GET') {
      if (!this.events.has(id)) throw error(404, 'notFound', 'Not Found');
      return { status: 200, body: this.events.get(id) };
    }
    const event = request.body();
    if (!/^[a-v0-9]{5,1024}$/.test(event.id)) throw error(400, 'invalid', 'Invalid resource id value.');
    if (this.events.has(event.id)) throw error(409, 'duplicate', 'The requested identifier already exists.');
    this.events.set(event.id, { kind: 'calendar#event', status: 'confirmed', htmlLink: `https://www.google.com/calendar/event?eid=${event.id}`, ...event });
    return { status: 200, body: this.events.get(event.id) };
  }

  effects(marker) { return [...this.events.values()].filter((event) => event.summary === marker); }
}

// cloud.google.com/storage/docs/json_api/v1/objects/insert, /request-preconditions
export class ObjectStore {
  hosts = ['storage.googleapis.com'];
  objects = [];  // every write that went through, also one over another

  constructor({ secret }) { this.secret = secret; }

  handle(request) {
    authorized(request, `Bearer ${this.secret}`);
    const error = (code, message) => new Refusal(code, { error: { code, message } });
    if (request.method === 'POST' && request.path === '/upload/storage/v1/b/example-reports/o') {
      const name = request.query.get('name');
      if (request.query.get('uploadType') !== 'media' || !name) throw error(400, 'Required');
      if (request.query.get('ifGenerationMatch') === '0' && this.#latest(name)) throw error(412, 'At least one of the pre-conditions you specified did not hold.');
      this.objects.push({ name, bucket: 'example-reports', generation: String(1_700_000_000_000_000 + this.objects.length), text: request.text });
      return { status: 200, body: this.#shown(name) };
    }
    const name = decodeURIComponent(/^\/storage\/v1\/b\/example-reports\/o\/([^/]+)$/.exec(request.path)?.[1] ?? '');
    if (!this.#latest(name)) throw error(404, `No such object: example-reports/${name}`);
    return { status: 200, body: this.#shown(name) };
  }

  #latest(name) { return this.objects.findLast((object) => object.name === name); }
  #shown(name) { const { text, ...rest } = this.#latest(name); return { kind: 'storage#object', size: String(text.length), ...rest }; }

  effects(marker) { return this.objects.filter((object) => object.text === marker); }
}
