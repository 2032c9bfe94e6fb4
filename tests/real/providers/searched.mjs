// Providers without any key: each request makes one more, and only a look-up tells.
import { Refusal, authorized, basic } from './server.mjs';

// developer.atlassian.com/cloud/jira/platform/rest/v3: the index lags behind what was created.
export class Jira {
  hosts = ['example.atlassian.net'];
  issues = [];

  constructor({ user, secret, lag = 1500 }) {
    this.authorization = basic(user, secret);
    this.lag = lag;
  }

  handle(request) {
    authorized(request, this.authorization);
    if (request.method === 'POST' && request.path === '/rest/api/3/issue') return this.#create(request.body());
    if (request.method === 'POST' && request.path === '/rest/api/3/search/jql') return this.#search(request.body());
    throw new Refusal(request.path.endsWith('/search') ? 410 : 404, { errorMessages: ['The requested API has been removed.'] });
  }

  #create({ fields }) {
    const text = fields?.description;
    if (!fields?.project?.key || !fields.issuetype || !fields.summary || /[\r\n]/.test(fields.summary) || fields.summary.length > 255) throw new Refusal(400, { errorMessages: [], errors: { summary: 'invalid' } });
    if (fields.labels?.some((label) => /\s/.test(label))) throw new Refusal(400, { errorMessages: [], errors: { labels: "The label can't contain spaces." } });
    if (text && (text.type !== 'doc' || text.version !== 1)) throw new Refusal(400, { errorMessages: ['not an Atlassian Document'] });
    const n = this.issues.length + 1;
    const issue = { id: String(10_000 + n), key: `${fields.project.key}-${n}`, fields, at: Date.now() };
    this.issues.push(issue);
    return { status: 201, body: { id: issue.id, key: issue.key, self: `https://example.atlassian.net/rest/api/3/issue/${issue.id}` } };
  }

  #search({ jql, maxResults = 50 }) {
    const label = /^labels = "((?:[^"\\]|\\.)*)"$/.exec(jql)?.[1];
    if (label === undefined) throw new Refusal(400, { errorMessages: [`Error in the JQL Query: ${jql}`] });
    const found = this.issues.filter((i) => i.fields.labels.includes(label.replace(/\\(.)/g, '$1')) && Date.now() - i.at > this.lag);
    return { status: 200, body: { issues: found.slice(0, maxResults).map(({ id, key, fields }) => ({ id, key, fields: { summary: fields.summary, labels: fields.labels } })), isLast: found.length <= maxResults } };
  }

  effects(marker) { return this.issues.filter((i) => i.fields.summary === marker); }
}

// docs.github.com/rest/issues: newest first, pages by the Link header, pull requests among the issues.
// Others of the same bot come after ours, so that it is on the second page.
export class GitHub {
  hosts = ['api.github.com'];
  issues = [];

  constructor({ secret, others = 120 }) {
    Object.assign(this, { secret, others });
  }

  handle(request) {
    authorized(request, `Bearer ${this.secret}`);
    if (!request.headers['user-agent']) throw new Refusal(403, { message: 'Request forbidden by administrative rules.' });
    if (request.path !== '/repos/example/project/issues') throw new Refusal(404, { message: 'Not Found' });
    return request.method === 'POST' ? this.#create(request.body()) : this.#list(request);
  }

  #create({ title, body = null }) {
    if (typeof title !== 'string') throw new Refusal(422, { message: 'Validation Failed' });
    const issue = this.#add(title, body, 'example-bot');
    for (let i = 0; i < this.others; i++) this.#add('another', i % 2 ? 'text' : null, i % 3 ? 'example-bot' : 'somebody');
    return { status: 201, body: issue };
  }

  #add(title, body, login) {
    const number = this.issues.length + 1;
    const issue = { number, title, body, user: { login }, state: 'open', html_url: `https://github.com/example/project/issues/${number}`, updated_at: new Date().toISOString(),
      ...(number % 5 === 0 ? { pull_request: {} } : {}) };
    this.issues.unshift(issue);
    return issue;
  }

  #list({ query, url }) {
    const [page, perPage] = [Number(query.get('page') ?? 1), Math.min(Number(query.get('per_page') ?? 30), 100)];
    const since = query.get('since');
    if (since && Number.isNaN(Date.parse(since))) throw new Refusal(422, { message: 'since' });
    const all = this.issues.filter((i) => (!query.get('creator') || i.user.login === query.get('creator')) && (query.get('state') === 'all' || i.state === 'open')
      && (!since || Date.parse(i.updated_at) >= Date.parse(since)));
    const link = (to, rel) => { const at = new URL(url); at.searchParams.set('page', to); return `<${at}>; rel="${rel}"`; };
    const pages = Math.max(1, Math.ceil(all.length / perPage));
    return { status: 200, body: all.slice((page - 1) * perPage, page * perPage), headers: page < pages ? { Link: `${link(page + 1, 'next')}, ${link(pages, 'last')}` } : {} };
  }

  effects(marker) { return this.issues.filter((i) => i.title === marker); }
}

// docs.slack.dev: chat.postMessage, conversations.history. Errors are answers 200.
export class Slack {
  hosts = ['slack.com'];
  messages = [];
  #last = 0;

  constructor({ secret, others = 20 }) {
    Object.assign(this, { secret, others });
  }

  handle(request) {
    if (request.headers.authorization !== `Bearer ${this.secret}`) return { status: 200, body: { ok: false, error: 'invalid_auth' } };
    if (request.path === '/api/chat.postMessage') return this.#post(request.body(), request.headers['content-type']);
    if (request.path === '/api/conversations.history') return this.#history(request.query);
    return { status: 200, body: { ok: false, error: 'unknown_method' } };
  }

  #post({ channel, text, metadata }, type) {
    if (!/^application\/json/.test(type ?? '')) return { status: 200, body: { ok: false, error: 'no_text' } };
    if (metadata && !(metadata.event_type && metadata.event_payload)) return { status: 200, body: { ok: false, error: 'invalid_metadata_format' } };
    const message = this.#add(channel, text, metadata);
    for (let i = 0; i < this.others; i++) this.#add(channel, 'chatter');
    return { status: 200, body: { ok: true, channel, ts: message.ts, message } };
  }

  #add(channel, text, metadata) {
    this.#last = Math.max(this.#last + 1, Date.now() * 1000);  // microseconds; unique, as Slack's are
    const message = { type: 'message', channel, text, ts: `${Math.floor(this.#last / 1e6)}.${String(this.#last % 1e6).padStart(6, '0')}`, metadata };
    this.messages.unshift(message);
    return message;
  }

  #history(query) {
    const limit = Math.min(Number(query.get('limit') ?? 100), 999);
    const from = Number(query.get('cursor')?.slice(1) ?? 0);
    const all = this.messages.filter((m) => m.channel === query.get('channel') && Number(m.ts) > Number(query.get('oldest') ?? 0));
    const messages = all.slice(from, from + limit).map(({ channel, metadata, ...rest }) => ({ ...rest, ...(metadata && query.get('include_all_metadata') === 'true' ? { metadata } : {}) }));
    const more = all.length > from + limit;
    return { status: 200, body: { ok: true, messages, has_more: more, pin_count: 0, ...(more ? { response_metadata: { next_cursor: `c${from + limit}` } } : {}) } };
  }

  effects(marker) { return this.messages.filter((m) => m.text === marker); }
}

// docs.servicenow.com: Table API. Fields of a query that do not exist are left out without a word.
export class ServiceNow {
  hosts = ['example.service-now.com'];
  incidents = [];

  constructor({ user, secret, uniqueIndex = false }) {
    this.authorization = basic(user, secret);
    this.uniqueIndex = uniqueIndex;
  }

  handle(request) {
    authorized(request, this.authorization);
    if (request.path !== '/api/now/table/incident') throw new Refusal(400, { error: { message: 'Invalid table' }, status: 'failure' });
    const fields = request.query.get('sysparm_fields')?.split(',');
    const shown = (row) => Object.fromEntries(Object.entries(row).filter(([name]) => !fields || fields.includes(name)));
    if (request.method === 'POST') return { status: 201, body: { result: shown(this.#create(request.body())) } };
    let rows = this.incidents;
    for (const term of (request.query.get('sysparm_query') ?? '').split('^').filter(Boolean)) {
      const [, name, value] = /^(\w+)=(.*)$/.exec(term) ?? [];
      if (['sys_id', 'number', 'correlation_id', 'short_description'].includes(name)) rows = rows.filter((row) => row[name] === value);
    }
    return { status: 200, body: { result: rows.slice(0, Number(request.query.get('sysparm_limit') ?? 10_000)).map(shown) } };
  }

  #create(body) {
    if (this.uniqueIndex && body.correlation_id && this.incidents.some((row) => row.correlation_id === body.correlation_id)) {
      throw new Refusal(403, { error: { message: 'Operation Failed', detail: 'Error during insert of incident: Unique Key violation detected by database' }, status: 'failure' });
    }
    const n = this.incidents.length + 1;
    const row = { sys_id: n.toString(16).padStart(32, '0'), number: `INC${String(n).padStart(7, '0')}`, ...body };
    this.incidents.push(row);
    return row;
  }

  effects(marker) { return this.incidents.filter((row) => row.short_description === marker); }
}

// docs.bestpractical.com/rt/5: REST 2. The search reads what was just written. Who may not set the field
// gets a ticket all the same. (tests/rt has the real one.)
const kTicketSql = new RegExp(String.raw`^CF\.\{OperationKey\} = '([^']*)' OR \(CF\.\{OperationKey\} IS NULL AND Creator = '__CurrentUser__' `
  + String.raw`AND Subject = "((?:[^"\\]|\\.)*)" AND Created > '30 days ago'\)$`);

export class RequestTracker {
  hosts = ['rt.example.com'];
  tickets = [];
  maySetField = true;

  constructor({ secret }) {
    this.authorization = `token ${secret}`;
  }

  handle(request) {
    authorized(request, this.authorization);
    if (request.method === 'POST' && request.path === '/REST/2.0/ticket') return this.#create(request.body());
    if (request.method === 'GET' && request.path === '/REST/2.0/tickets') return this.#search(request.query);
    throw new Refusal(404, { message: 'Not Found' });
  }

  #create(body) {
    if (body.Queue !== 'General') throw new Refusal(400, { message: 'Could not find queue' });
    const ticket = { type: 'ticket', key: this.maySetField ? body.CustomFields?.OperationKey : undefined, id: String(this.tickets.length + 1), _url: `https://rt.example.com/REST/2.0/ticket/${this.tickets.length + 1}`, ...body };
    this.tickets.push(ticket);
    return { status: 201, body: { type: 'ticket', id: ticket.id, _url: ticket._url }, headers: { Location: ticket._url } };
  }

  #search(query) {
    const [, key, subject] = kTicketSql.exec(query.get('query')) ?? [];
    if (key === undefined) throw new Refusal(400, { message: 'bad TicketSQL' });
    const all = this.tickets.filter((t) => t.key === key || (t.key === undefined && t.Subject === subject.replace(/\\(.)/g, '$1')));
    const items = all.slice(0, Number(query.get('per_page') ?? 20)).map((t) => ({
      type: 'ticket', id: t.id, _url: t._url, Subject: t.Subject, CustomFields: [{ type: 'customfield', name: 'OperationKey', values: t.key ? [t.key] : [] }],
    }));
    return { status: 200, body: { count: items.length, total: all.length, page: 1, pages: 1, per_page: 20, items } };
  }

  effects(marker) { return this.tickets.filter((t) => t.Subject === marker); }
}
