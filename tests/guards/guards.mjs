// All guards, in the order of the table, and the table.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import deadline from './list/deadline.mjs';
import epoch from './list/epoch.mjs';
import evidence from './list/evidence.mjs';
import journal from './list/journal.mjs';
import verdict from './list/verdict.mjs';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');

const parts = {
  'The epoch': epoch,
  'The journal': journal,
  'The deadline': deadline,
  'The way out of unknown': verdict,
  'Evidence, and what undoes': evidence,
};
export const guards = Object.values(parts).flat();

const file = path.join(root, 'tests/guards/README.md');
const [begin, end] = ['<!-- written by ./dev guards --write -->\n', '<!-- end -->\n'];

const test = ({ program, name, section }) => `\`${path.basename(program)}\`: ${section ?? name}`;
const rows = Object.entries(parts).map(([title, list]) => `
### ${title}

| name | guard taken out | where | test that fails |
|---|---|---|---|
${list.map((one) => `| \`${one.name}\` | ${one.says} | ${[...new Set(one.edits.map((e) => `\`${e.file}\``))].join(', ')} | ${test(one.test)} |`).join('\n')}
`).join('');

const split = () => {
  const text = readFileSync(file, 'utf8');
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`${file}: the marks of the table are gone`);
  return { head: text.slice(0, from + begin.length), body: text.slice(from + begin.length, to), tail: text.slice(to) };
};
export const table = {
  current: () => split().body === rows,
  write: () => { const { head, tail } = split(); writeFileSync(file, head + rows + tail); },
};
