// Configurations as objects (JSON is YAML), with times short enough for a story of seconds.

export function configuration({ port = 0, tools, defaults = {}, worker = {}, admin = {}, ...more }) {
  return {
    version: 1,
    database: { dsn: '${env:OUTBOXD_DATABASE}' },
    worker: {
      name: 'e2e', concurrency: 32, poll: { busy: '5ms', idle: '200ms' }, drain_timeout: '5s', lease_margin: '1s', ...worker,
    },
    admin: { listen: `127.0.0.1:${port}`, ...admin },
    log: { level: 'info', format: 'text' },
    defaults: {
      timeout: '2s',
      connect_timeout: '1s',
      retry: { max_attempts: 5, initial: '200ms', max: '1s', multiplier: 2, jitter: 0, give_up_after: '1h' },
      reconcile: { settle: '1s', confirmations: 1, interval: '300ms', max_interval: '1s', give_up_after: '1h', after_absent: 'retry' },
      ...defaults,
    },
    testing: { allow_failpoints: true },
    tools,
    ...more,
  };
}

export const ticketTool = (url, more = {}) => ({
  description: 'Open a ticket at the desk.',
  effect: 'write',
  arguments: { type: 'object', required: ['title'], properties: { title: { type: 'string', maxLength: 200 } } },
  key: { encoding: 'hex', window: '24h' },
  execute: {
    type: 'http',
    method: 'POST',
    url: `${url}/tickets`,
    headers: { 'Idempotency-Key': '{{ operation.key }}' },
    json: { title: '{{ arguments.title }}', external_ref: '{{ operation.key }}', operation_id: '{{ operation.id }}' },
    outcomes: [
      { when: { status: 201 }, then: 'succeeded', result: { id: '/id' } },
      { when: { status: 429 }, then: 'retry', retry_after: 'header' },
      { when: { status: [400, 422] }, then: 'rejected', code: '/code', message: '/message' },
    ],
  },
  reconcile: {
    type: 'http',
    method: 'GET',
    url: `${url}/tickets`,
    query: { external_ref: '{{ operation.key }}', limit: 2 },
    items: '/tickets',
    match: { '/external_ref': '{{ operation.key }}' },
    must_equal: { '/title': '{{ arguments.title }}' },
    result: { id: '/id' },
    paginate: { from: 'body:/next_cursor', to: 'query:cursor', more: { '/has_more': true }, max_pages: 3 },
    consistency: 'strong',
  },
  ...more,
});

// A ticket that can be closed again.
export const closableTool = (url) => ticketTool(url, {
  compensate: {
    close: {
      type: 'http',
      method: 'POST',
      url: `${url}/tickets/{{ original.result.id }}/close`,
      headers: { 'Idempotency-Key': '{{ operation.key }}' },
      json: {
        external_ref: '{{ operation.key }}', operation_id: '{{ operation.id }}', of: '{{ original.id }}',
        note: "{{ arguments.note | default('none') }}", title: '{{ original.arguments.title }}',
      },
      outcomes: [
        { when: { status: 201 }, then: 'succeeded', result: { state: '/state' } },
        { when: { status: [400, 422] }, then: 'rejected', code: '/code', message: '/message' },
      ],
      reconcile: {
        type: 'http',
        method: 'GET',
        url: `${url}/tickets/{{ original.result.id }}`,
        query: { external_ref: '{{ operation.key }}' },
        verdicts: [
          { when: { status: 200, body: { '/state': 'closed' } }, then: 'found', result: { state: '/state' } },
          { when: { status: 200 }, then: 'absent' },
        ],
      },
    },
  },
});
