// node config/reference.mjs [--check]: the tables of docs/configuration.md, out of the schema.
// --check: exit 1 when they are not what the file has.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..');
const schema = JSON.parse(readFileSync(path.join(root, 'config/outboxd.schema.json'), 'utf8'));
const file = path.join(root, 'docs/configuration.md');
const marker = '<!-- Below: node config/reference.mjs -->\n';

// "#/$defs/tool/properties/retry" and annotations beside the $ref.
const follow = (node) => {
  let { $ref: ref, ...rest } = node;
  while (ref) {
    const target = ref.slice(2).split('/').reduce((at, word) => at[word], schema);
    ({ $ref: ref, ...rest } = { ...target, ...rest, $ref: target.$ref });
  }
  return rest;
};
const name = (ref) => ref?.match(/^#\/\$defs\/(duration|size|rate|condition|extraction)$/)?.[1];
const code = (value) => `\`${typeof value === 'string' && value !== '' ? value : JSON.stringify(value)}\``;

const typeOf = (property) => {
  const known = name(property.$ref);
  if (known) return known;
  const node = follow(property);
  if ('const' in node) return code(node.const);
  if (node.anyOf) {
    const choice = node.anyOf.find((one) => one.enum);
    if (choice) return choice.enum.map(code).join(' \\| ');
    return node.anyOf.map((one) => name(one.$ref) ?? code(one.const)).join(' or ');
  }
  if (node.oneOf || node.properties) return 'mapping, below';
  const types = [node.type ?? 'any value'].flat();
  if (types.includes('array') && types.length === 1) {
    const item = node.items?.$ref ? 'rules' : 'texts';
    return node.items?.$ref ? `list of ${item.replace('rules', node.items.$ref.split('/').pop().replace('_', ' '))}s` : `list of ${item}`;
  }
  if (types.includes('object') && types.length <= 2) return node.additionalProperties?.$ref || node.additionalProperties?.type ? 'mapping of names to values' : 'mapping';
  if (types.includes('number') && types.includes('boolean')) return 'text';
  return { integer: 'whole number', number: 'number', boolean: '`true` \\| `false`' }[types[0]] ?? types.join(' or ');
};
const rangeOf = (property) => {
  const node = follow(property);
  if (node['x-range']) return node['x-range'];
  return node.minimum === undefined ? '' : `${node.minimum} to ${node.maximum}`;
};

const lines = [];
const table = (title, node) => {
  const required = node.required ?? [];
  lines.push(`### ${title}`, '');
  if (node.description) lines.push(node.description, '');
  lines.push('| key | type | default | range | meaning |', '|---|---|---|---|---|');
  for (const [key, property] of Object.entries(node.properties)) {
    const full = follow(property);
    const fallback = 'default' in full ? code(full.default) : required.includes(key) ? 'required' : '';
    lines.push(`| \`${key}\` | ${typeOf(property)} | ${fallback} | ${rangeOf(property)} | ${(full.description ?? '').replaceAll('|', '\\|')} |`);
  }
  lines.push('');
};

const sections = (title, node) => {
  table(title, node);
  for (const [key, property] of Object.entries(node.properties)) {
    const full = follow(property);
    if (full.properties && !full.oneOf) sections(title === 'The file' ? `\`${key}\`` : title.replace(/`$/, `.${key}\``), full);
  }
};
sections('The file', schema);
const defs = [
  ['An item of `database.sources`', 'source'],
  ['`credentials.NAME`, kind bearer', 'credential_bearer'], ['`credentials.NAME`, kind basic', 'credential_basic'], ['`credentials.NAME`, kind header', 'credential_header'],
  ['`credentials.NAME`, kind query', 'credential_query'], ['`credentials.NAME`, kind oauth2_client_credentials', 'credential_oauth2_client_credentials'],
  ['`credentials.NAME`, kind standard_webhooks', 'credential_standard_webhooks'], ['`credentials.NAME`, kind mtls', 'credential_mtls'],
  ['`tools.NAME`', 'tool'], ['`tools.NAME.key`', 'key'],
  ['`execute`, type http', 'execute_http'], ['`execute`, type command', 'execute_command'], ['`execute`, type log', 'execute_log'], ['`execute`, type sql', 'execute_sql'], ['`execute`, type mcp', 'execute_mcp'],
  ['`reconcile`, type http', 'reconcile_http'], ['`reconcile`, type command', 'reconcile_command'], ['`reconcile`, type manual', 'reconcile_manual'],
  ['`reconcile`, type sql', 'reconcile_sql'], ['`reconcile`, type mcp', 'reconcile_mcp'], ['`reconcile`, type resend', 'reconcile_resend'],
  ['A rule of `outcomes`', 'outcome'], ['A rule of `verdicts`', 'verdict'], ['`when`', 'when'], ['`paginate`', 'paginate'],
  ['`tests.NAME`', 'test'], ['`request` of a test', 'test_request'], ['`answers` of a test', 'test_answer'], ['`reconcile.answers` of a test', 'test_verdict'], ['`pages` of an answer', 'test_page'],
];
for (const [title, key] of defs) {
  if (schema.$defs[key]) table(title, schema.$defs[key]);
}

const text = readFileSync(file, 'utf8');
const at = text.indexOf(marker);
if (at < 0) throw new Error(`${file} lacks the line: ${marker}`);
const wanted = `${text.slice(0, at)}${marker}\n${lines.join('\n')}`;
if (process.argv.includes('--check')) {
  const listed = new Set(defs.map(([, key]) => key));
  const missing = Object.entries(schema.$defs).filter(([key, node]) => node.properties && !listed.has(key) && !/^(compensation_|tool_|retry$|http$)/.test(key));
  for (const [key] of missing) console.error(`config/reference.mjs does not list ${key}`);
  if (wanted !== text) console.error('docs/configuration.md is not what the schema says: run node config/reference.mjs');
  process.exit(missing.length > 0 || wanted !== text ? 1 : 0);
}
writeFileSync(file, wanted);
