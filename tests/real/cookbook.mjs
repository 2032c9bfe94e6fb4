// Every file of config/cookbook, unchanged, with whoever takes its requests: Radicale and a mail
// server as they are, and stand-ins that do what the providers' documentation says.
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Authority } from './certificates.mjs';
import { ConnectProxy } from './connect_proxy.mjs';
import { Mail } from './mail.mjs';
import { GoogleCalendar, ObjectStore } from './providers/conditional.mjs';
import { Stripe, Zendesk } from './providers/keyed.mjs';
import { McpTracker } from './providers/mcp.mjs';
import { PagerDuty } from './providers/queued.mjs';
import { GitHub, Jira, RequestTracker, ServiceNow, Slack } from './providers/searched.mjs';
import { ProviderServer } from './providers/server.mjs';
import { Shipping } from './providers/webhook.mjs';
import { Radicale } from './radicale.mjs';

export const folder = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../config/cookbook');

export const secrets = {
  caldav: 'caldav-secret', github: 'github-secret', google: 'google-secret', jira_api_token: 'jira-secret', mcp: 'mcp-secret', object_store: 'store-secret',
  pagerduty_api_key: 'pager-secret', pagerduty_routing_key: 'R'.repeat(32), request_tracker: '1-14-secret', servicenow: 'snow-secret',
  slack: 'xoxb-secret', stripe: 'rk_test_secret', whsec: `whsec_${Buffer.from('a secret of twenty-eight bytes').toString('base64')}`, zendesk: 'zendesk-secret',
};

// How each file's tool is called: `args` puts a marker where the other side shows it, `result` is what
// the outbox must have recorded of the one effect.
export const tools = {
  caldav_event: { tool: 'caldav_event', args: (title) => ({ title, start: '20261201T110000Z', end: '20261201T120000Z' }), result: () => ['etag'] },
  github_issue: { tool: 'github_issue', args: (title) => ({ title, text: 'db-1' }), result: (e) => ({ number: e.number, url: e.html_url }) },
  google_calendar_event: { tool: 'calendar_event', args: (title) => ({ title, start: '2026-12-01T10:00:00Z', end: '2026-12-01T11:00:00Z' }), result: (e) => ({ id: e.id, url: e.htmlLink }) },
  inhouse_webhook: { tool: 'book_shipment', args: (order) => ({ order, weight_grams: 500 }), marker: (name) => name.toUpperCase().replaceAll('_', '-'), result: (e) => ({ shipment: e.shipment }) },
  jira_issue: { tool: 'jira_issue', args: (summary) => ({ summary, text: 'db-1 is full' }), result: (e) => ({ id: e.id, key: e.key }) },
  mcp_server: { tool: 'mcp_issue', args: (title) => ({ title, text: 'db-1 is full' }), result: (e) => ({ id: e.id, url: e.url }) },
  object_store: { tool: 'archive_report', args: (text) => ({ text }), result: (e) => ({ name: e.name, generation: e.generation }) },
  pagerduty: { tool: 'page_on_call', args: (summary) => ({ summary, source: 'db-1' }), result: (e) => ({ id: e.id, number: e.incident_number, url: e.html_url }) },
  request_tracker: { tool: 'rt_ticket', args: (subject) => ({ subject, text: 'It is on fire' }), result: (e) => ({ id: e.id, url: e._url }) },
  servicenow_incident: { tool: 'servicenow_incident', args: (summary) => ({ short_description: summary }), result: (e) => ({ sys_id: e.sys_id, number: e.number }) },
  slack_message: { tool: 'slack_message', args: (text) => ({ channel: 'C0AAA', text }), result: (e) => ['ts', e.ts] },
  smtp_mail: { tool: 'send_mail', args: (subject) => ({ to: 'ada@example.org', subject, text: 'hello' }) },
  stripe_refund: { tool: 'stripe_refund', args: (intent) => ({ payment_intent: intent, amount: 500 }), marker: (name) => `pi_${name.replace(/[-_]/g, '')}`,
    result: (e) => ({ id: e.id, status: 'succeeded', amount: 500, currency: 'eur' }) },
  zendesk_ticket: { tool: 'zendesk_ticket', args: (subject) => ({ subject, text: 'It is on fire' }), result: (e) => ({ id: e.id, url: e.url }) },
};

export const files = readdirSync(folder).filter((name) => name.endsWith('.yaml')).map((name) => name.slice(0, -'.yaml'.length)).sort();

export function table(rows) {
  const head = { file: 'file', kills: 'kills', effects: 'effects', verdict: 'verdict', status: 'status' };
  const width = (name) => Math.max(...[head, ...rows].map((row) => String(row[name]).length));
  return [head, ...rows].map((row) => Object.keys(head).map((name) => String(row[name]).padEnd(width(name))).join('  ').trimEnd()).join('\n');
}

// The other sides, started, and how a daemon gets to them.
export class Cookbook {
  static async open(w) {
    const book = new Cookbook();
    book.w = w;
    const credentials = path.join(w.dir, 'credentials');
    mkdirSync(credentials);
    for (const [name, value] of Object.entries(secrets)) writeFileSync(path.join(credentials, name), `${value}\n`);
    const s = secrets;
    book.sides = {
      github_issue: new GitHub({ secret: s.github }), google_calendar_event: new GoogleCalendar({ secret: s.google }),
      inhouse_webhook: new Shipping({ secret: s.whsec }), jira_issue: new Jira({ user: 'bot@example.com', secret: s.jira_api_token }),
      mcp_server: new McpTracker({ secret: s.mcp }),
      object_store: new ObjectStore({ secret: s.object_store }), pagerduty: new PagerDuty({ secret: s.pagerduty_api_key, routingKey: s.pagerduty_routing_key }),
      request_tracker: new RequestTracker({ secret: s.request_tracker }), servicenow_incident: new ServiceNow({ user: 'outboxd', secret: s.servicenow }),
      slack_message: new Slack({ secret: s.slack }), stripe_refund: new Stripe({ secret: s.stripe }),
      zendesk_ticket: new Zendesk({ user: 'bot@example.com/token', secret: s.zendesk }),
    };
    const authority = new Authority(w.dir);
    const names = Object.values(book.sides).flatMap((side) => side.hosts);
    book.proxy = await ConnectProxy.start();
    book.server = await ProviderServer.start(authority.issue(names), Object.values(book.sides));
    for (const name of names) book.proxy.route(name, book.server.port);
    book.sides.caldav_event = await Radicale.start(w.dir, authority.issue(['dav.example.com']), { password: s.caldav });
    book.proxy.route('dav.example.com', book.sides.caldav_event.port);
    book.sides.smtp_mail = await Mail.start(w.dir, authority, { password: 'mail-secret' });
    w.env = { ...w.env, ...book.sides.smtp_mail.env, CREDENTIALS_DIRECTORY: credentials };
    book.configuration = {
      tools: {}, include: [path.join(folder, '*.yaml')],
      defaults: { timeout: '8s', reconcile: { interval: '1s' }, http: { proxy: book.proxy.url, ca_file: authority.file } },
    };
    return book;
  }

  marker(file, name) { return (tools[file].marker ?? ((text) => text))(`${name}-${file}`); }
  enqueue(file, name) { return this.w.enqueue(`${name}-${file}`, { tool: tools[file].tool, args: tools[file].args(this.marker(file, name)) }); }
  // The next answer to this operation's request is lost, after its effect.
  loseAnswer(file, name) {
    if (file === 'smtp_mail') this.sides.smtp_mail.lose = 1;
    else if (file === 'caldav_event') this.proxy.cutWhen('dav.example.com', () => this.effects(file, name).length > 0);
    else this.server.loseAnswer(this.marker(file, name));
  }

  effects(file, name) { return this.sides[file].effects(this.marker(file, name)); }

  async close() {
    await Promise.allSettled([this.sides?.caldav_event?.stop(), this.sides?.smtp_mail?.stop()]);
    this.server?.stop();
    this.proxy?.stop();
  }
}
