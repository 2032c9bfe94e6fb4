// What can be said without a build: every edit applies to exactly one place, every test is there.
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { guards, root, table } from './guards.mjs';
import { change, inSql, plain, seam } from './seam.mjs';

// Literals that clang-format broke are one again.
const sources = () => execFileSync('git', ['ls-files', '-co', '--exclude-standard', 'tests/*.cpp'], { cwd: root, encoding: 'utf8' })
  .split('\n').filter(Boolean).map((name) => readFileSync(path.join(root, name), 'utf8').replace(/"\s*\n\s*"/g, ''))
  .join('\n');

export function check() {
  const problems = [];
  const tests = sources();
  const names = new Set();
  for (const { name, says, edits, test } of guards) {
    if (names.has(name)) problems.push(`guard ${name}: there are two of that name`);
    names.add(name);
    if (!says || !edits.length) problems.push(`guard ${name}: says nothing, or takes nothing out`);
    const texts = new Map();
    for (const { file, find, put } of edits) {
      const place = path.join(root, file);
      if (!existsSync(place)) { problems.push(`guard ${name}: there is no ${file}`); continue; }
      const text = texts.get(file) ?? readFileSync(place, 'utf8');
      const times = text.split(plain(find)).length - 1;
      if (times !== 1) problems.push(`guard ${name}: what it takes out stands ${times} times in ${file}, not once: ${JSON.stringify(find)}`);
      else texts.set(file, inSql({ file }) ? change(text, { find, put }) : text);
    }
    if (!tests.includes(`TEST_CASE("${test.name}"`)) problems.push(`guard ${name}: there is no test case "${test.name}"`);
    if (test.section && !tests.includes(`"${test.section}"`)) problems.push(`guard ${name}: there is no section "${test.section}"`);
  }
  if (!problems.length) {
    for (const file of new Set(['sql/embed.cmake', ...guards.flatMap(({ edits }) => edits.map((one) => one.file))])) {
      try {
        seam(file, readFileSync(path.join(root, file), 'utf8'), guards);
      } catch (error) {
        problems.push(error.message);
      }
    }
  }
  if (!table.current()) problems.push('tests/guards/README.md is not what the lists say: run ./dev guards --write');
  return problems;
}
