// Providers with an idempotency key: what was answered once is answered again, for as long as the key
// is remembered; a key that is used for something else is refused.
import { Refusal, authorized, basic } from './server.mjs';

// The memory of keys. `run` is done once per key; `conflict` and `mismatch` are the provider's words.
class Keys {
  #known = new Map();

  async once(key, request, { conflict, mismatch }, run) {
    if (!key) return { ...(await run()), hit: false };
    const fingerprint = `${request.method} ${request.path} ${request.text}`;
    const known = this.#known.get(key);
    if (known && known.fingerprint !== fingerprint) throw mismatch();
    if (known && !known.answer) throw conflict();
    if (known) return { ...known.answer, hit: true };
    const entry = { fingerprint };
    this.#known.set(key, entry);
    try {
      entry.answer = await run();
      return { ...entry.answer, hit: false };
    } catch (error) {
      this.#known.delete(key);  // what is refused before it began is not remembered
      throw error;
    }
  }

  forget() { this.#known.clear(); }  // 24 hours later
}

// docs.stripe.com/api/idempotent_requests, /api/refunds. Lists are newest first; the refunds of other
// people come in between, so that ours is not on the first page.
export class Stripe {
  hosts = ['api.stripe.com'];
  refunds = [];
  keys = new Keys();
  #number = 0;

  constructor({ secret, others = 120 }) {
    this.secret = secret;
    this.others = others;
  }

  handle(request) {
    authorized(request, `Bearer ${this.secret}`);
    if (request.path !== '/v1/refunds') throw new Refusal(404, { error: { type: 'invalid_request_error', message: 'Unrecognized request URL' } });
    return request.method === 'GET' ? this.#list(request.query) : this.#create(request);
  }

  async #create(request) {
    const error = (status, type, message) => () => new Refusal(status, { error: { type, message } });
    const answer = await this.keys.once(request.headers['idempotency-key'], request, {
      conflict: error(409, 'idempotency_error', 'There is currently another in-progress request using this Idempotent Key.'),
      mismatch: error(400, 'idempotency_error', 'Keys for idempotent requests can only be used with the same parameters they were first used with.'),
    }, () => {
      const form = new URLSearchParams(request.text);
      const intent = form.get('payment_intent');
      if (!intent) throw new Refusal(400, { error: { type: 'invalid_request_error', code: 'parameter_missing', message: 'payment_intent' } });
      const refund = this.#add(intent, Number(form.get('amount') ?? 2000), { outbox_key: form.get('metadata[outbox_key]') });
      for (let i = 0; i < this.others; i++) this.#add(intent, 1, {});
      return { status: 200, body: refund };
    });
    return { ...answer, headers: answer.hit ? { 'Idempotent-Replayed': 'true' } : {} };
  }

  #add(intent, amount, metadata) {
    const refund = { id: `re_${++this.#number}`, object: 'refund', payment_intent: intent, amount, currency: 'eur', status: 'succeeded', metadata };
    this.refunds.unshift(refund);
    return refund;
  }

  #list(query) {
    const limit = Math.min(Number(query.get('limit') ?? 10), 100);
    let all = this.refunds.filter((r) => r.payment_intent === query.get('payment_intent'));
    const after = query.get('starting_after');
    if (after) all = all.slice(all.findIndex((r) => r.id === after) + 1);
    return { status: 200, body: { object: 'list', url: '/v1/refunds', has_more: all.length > limit, data: all.slice(0, limit) } };
  }

  effects(marker) { return this.refunds.filter((r) => r.payment_intent === marker && r.metadata.outbox_key); }
}

// developer.zendesk.com/api-reference/ticketing/introduction#idempotency, /tickets
export class Zendesk {
  hosts = ['example.zendesk.com'];
  tickets = [];
  keys = new Keys();

  constructor({ user, secret }) {
    this.authorization = basic(user, secret);
  }

  async handle(request) {
    authorized(request, this.authorization);
    if (request.path !== '/api/v2/tickets') throw new Refusal(404, { error: 'InvalidEndpoint' });
    if (request.method === 'GET') {
      const wanted = request.query.get('external_id');
      const tickets = this.tickets.filter((t) => wanted === null || t.external_id === wanted);
      return { status: 200, body: { tickets: tickets.slice(0, 100), next_page: null, previous_page: null, count: tickets.length } };
    }
    const answer = await this.keys.once(request.headers['idempotency-key'], request, {
      conflict: () => new Refusal(409, { error: 'Conflict' }),
      mismatch: () => new Refusal(400, { error: 'IdempotentRequestError', description: 'Request parameters do not match the ones sent before' }),
    }, () => {
      const { ticket } = request.body();
      if (!ticket?.comment?.body) throw new Refusal(422, { error: 'RecordInvalid', description: 'Record validation errors' });
      const made = { id: this.tickets.length + 35436, url: `https://example.zendesk.com/api/v2/tickets/${this.tickets.length + 35436}.json`, status: 'new', ...ticket };
      this.tickets.push(made);
      return { status: 201, body: { ticket: made } };
    });
    return { ...answer, headers: { 'x-idempotency-lookup': answer.hit ? 'hit' : 'miss' } };
  }

  effects(marker) { return this.tickets.filter((t) => t.subject === marker); }
}
