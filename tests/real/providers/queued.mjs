// A provider that takes first and does later. developer.pagerduty.com: Events API v2 (202: queued) and
// REST API v2 (incidents). One key, one open incident; a resolved one does not count any more.
import { Refusal, authorized } from './server.mjs';

export class PagerDuty {
  hosts = ['events.pagerduty.com', 'api.pagerduty.com'];
  incidents = [];
  events = [];

  constructor({ routingKey, secret, lag = 1500 }) {
    Object.assign(this, { routingKey, secret, lag });
  }

  handle(request) { return request.host === 'events.pagerduty.com' ? this.#enqueue(request) : this.#list(request); }

  #enqueue(request) {
    const event = request.body();
    const complaints = ['summary', 'source', 'severity'].filter((name) => !event.payload?.[name]);
    if (request.path !== '/v2/enqueue' || event.routing_key !== this.routingKey || complaints.length) {
      throw new Refusal(400, { status: 'invalid event', message: 'Event object is invalid', errors: complaints });
    }
    this.events.push(event);
    setTimeout(() => this.#process(event), this.lag).unref();
    return { status: 202, body: { status: 'success', message: 'Event processed', dedup_key: event.dedup_key } };
  }

  #process(event) {
    const open = this.incidents.find((i) => i.incident_key === event.dedup_key && i.status !== 'resolved');
    if (open) return;
    const number = this.incidents.length + 1;
    this.incidents.push({ id: `PT${number}`, incident_number: number, html_url: `https://example.pagerduty.com/incidents/PT${number}`,
      incident_key: event.dedup_key, status: 'triggered', title: event.payload.summary });
  }

  #list(request) {
    authorized(request, `Token token=${this.secret}`);
    if (request.path !== '/incidents' || !request.headers.accept?.includes('version=2')) throw new Refusal(404, { error: { message: 'Not Found' } });
    const [offset, limit] = [Number(request.query.get('offset') ?? 0), Math.min(Number(request.query.get('limit') ?? 25), 100)];
    const wanted = request.query.get('incident_key');
    const all = this.incidents.filter((i) => wanted === null || i.incident_key === wanted);
    return { status: 200, body: { incidents: all.slice(offset, offset + limit), limit, offset, total: null, more: all.length > offset + limit } };
  }

  effects(marker) { return this.incidents.filter((i) => i.title === marker); }
}
