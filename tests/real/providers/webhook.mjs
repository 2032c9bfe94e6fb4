// A service of our own behind Standard Webhooks. Signatures are checked by the library of the
// standard's authors; an id that was seen is answered as it was the first time, and nothing is done.
import { Webhook } from 'standardwebhooks';
import { Refusal } from './server.mjs';

export class Shipping {
  hosts = ['shipping.internal.example.com'];
  shipments = [];
  seen = new Map();  // webhook-id → answer
  verified = 0;
  refused = [];

  constructor({ secret }) { this.webhook = new Webhook(secret); }

  handle(request) {
    try {
      this.webhook.verify(request.text, request.headers);
      ++this.verified;
    } catch (error) {
      this.refused.push(error.message);
      throw new Refusal(401, { code: 'signature', message: error.message });
    }
    if (request.method === 'GET') {
      const key = /^\/shipments\/by-key\/([0-9a-f]{64})$/.exec(request.path)?.[1];
      const found = this.shipments.find((shipment) => shipment.key === key);
      if (!found) throw new Refusal(404, { code: 'no_such_key' });
      return { status: 200, body: { shipment: found.shipment } };
    }
    const id = request.headers['webhook-id'];
    if (!this.seen.has(id)) {
      const { type, data } = request.body();
      if (request.path !== '/webhooks/book' || type !== 'shipment.book') throw new Refusal(422, { code: 'type', message: type });
      const shipment = { shipment: `S-${this.shipments.length + 1}`, ...data };
      this.shipments.push(shipment);
      this.seen.set(id, { status: 201, body: { shipment: shipment.shipment } });
    }
    return this.seen.get(id);
  }

  effects(marker) { return this.shipments.filter((shipment) => shipment.order === marker); }
}
