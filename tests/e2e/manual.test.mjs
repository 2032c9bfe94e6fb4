// The manual page and the completion know what the program knows: every command, every option.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { binary } from './world.mjs';

process.env.OUTBOXD = binary;
const { commands, files, parseHelp } = await import('../../docs/manual.mjs');
const root = fileURLToPath(new URL('../..', import.meta.url));
const known = commands();

test('the committed files are what --help says now (else: node docs/manual.mjs)', () => {
  for (const [name, text] of Object.entries(files(known))) assert.equal(readFileSync(path.join(root, name), 'utf8'), text, `${name} is stale`);
});

test('every command has a help text with an example', () => {
  assert.ok(known.all.length >= 26);
  for (const command of known.all) {
    assert.match(command.footer.join('\n'), /^Examples?:\n {2}(\S+=\S+ )?outboxd /m, command.name);
    assert.ok(command.about.length > 10, command.name);
    for (const option of command.options) assert.ok(option.text.length > 3, `${command.name} ${option.name}`);
  }
});

// From the text of --help itself, not from how the generator reads it.
const plain = (name) => {
  const text = execFileSync(binary, [...(name ? [name] : []), '--help'], { encoding: 'utf8' });
  return [...new Set([...text.slice(text.indexOf('Usage:'), text.search(/\nExamples?:/)).matchAll(/(?<=^ {2}|,)--?[a-z][a-z-]*/gm)].map((m) => m[0]))];
};

test('the manual page names every command and, in its section, every option', () => {
  const page = readFileSync(path.join(root, 'docs/outboxd.8'), 'utf8').replaceAll('\\-', '-');
  for (const { name } of known.all) {
    const start = page.indexOf(`\n.SS ${name}\n`);
    assert.ok(start > 0, name);
    const section = page.slice(start, page.indexOf('\n.S', start + 4));
    for (const option of plain(name)) assert.match(section, new RegExp(`\\\\fB.*${option}[,\\\\]`), `${name} ${option}`);
  }
});

test('the completion offers every command and every option', () => {
  const complete = (...words) => execFileSync('bash', ['-c', `source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _outboxd; printf '%s\\n' "\${COMPREPLY[@]}"`,
    path.join(root, 'config/completions/outboxd'), 'outboxd', ...words], { encoding: 'utf8' }).split('\n').filter(Boolean);
  const names = known.all.map((command) => command.name);
  for (const word of [...names, ...plain()]) assert.ok(complete('').includes(word), word);
  for (const name of names) assert.deepEqual(complete(name, '-').sort(), plain(name).sort(), name);
  assert.deepEqual(complete('list', '--status', 'un'), ['unknown']);
  assert.deepEqual(complete('--database', 'x', 'res'), ['resolve', 'resume'].filter((w) => names.includes(w)).sort());
  assert.deepEqual(complete('get', '--database', ''), []);
  assert.ok(complete('check-config', path.join(root, 'config/exam')).some((f) => f.endsWith('config/example.yaml')));
});

test('roff takes the manual page without a complaint', () => {
  const said = execFileSync('bash', ['-c', `groff -man -Tutf8 -ww ${path.join(root, 'docs/outboxd.8')} 2>&1 > /dev/null`], { encoding: 'utf8' });
  assert.equal(said, '');
});

test('help is read as it is printed', () => {
  const help = parseHelp('What\nUsage: outboxd x [OPTIONS] id\n\nPositionals:\n  id ID REQUIRED                Which\n\nOptions:\n  -h,--help   Help\n  --a-very-long-option-name-indeed VALUE\n                                Its text\n\nExample:\n  outboxd x\n');
  assert.deepEqual(help.options.map(({ names, value, text }) => [names, value, text]), [[['-h', '--help'], '', 'Help'], [['--a-very-long-option-name-indeed'], 'VALUE', 'Its text']]);
  assert.deepEqual(help.positionals, [{ name: 'id ID REQUIRED', text: 'Which' }]);
});
