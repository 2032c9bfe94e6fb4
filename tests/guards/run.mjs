// Takes one guard out at a time and demands that its test fails; and that it passes with nothing taken
// out. In a copy of the tree under build/, so that nothing is touched here. `./dev guards --help` says how.
import { spawn, execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { check } from './check.mjs';
import { guards, root, table } from './guards.mjs';
import { change, folderOfSql, inSql, nameOfGuard, seam } from './seam.mjs';

const tree = path.join(root, 'build/guards/tree');
const build = path.join(tree, 'build/release');
const cluster = path.join(tree, 'tests/support/pg_cluster.sh');
const limit = 600_000;  // ms, for one test
const env = { ...process.env, CCACHE_BASEDIR: tree, CCACHE_NOHASHDIR: '1', PG_LOG_LINES: '0' };

const usage = `./dev guards [--check] [--write] [--list] [NAME…]
  takes out the named guards (a name may end in *), or each one, and runs the test that must fail
  --check  only whether every edit still applies, every test is there, and the table is up to date
  --write  writes the table of tests/guards/README.md
  --list   the names`;

// Ends with its whole group: a test may have started a server.
function run(command, args, options = {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: tree, stdio: ['ignore', 'pipe', 'pipe'], detached: true, ...options });
    let text = '';
    let late = false;
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (data) => { text += data; });
    const timer = setTimeout(() => { late = true; process.kill(-child.pid, 'SIGTERM'); }, limit * (command === 'nice' ? 12 : 1));
    running.add(child.pid);
    child.on('close', (code) => { clearTimeout(timer); running.delete(child.pid); resolve({ code, text, late }); });
  });
}
const running = new Set();
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    for (const pid of running) process.kill(-pid, 'SIGTERM');
    process.exit(1);
  });
}

const seamed = new Set(['sql/embed.cmake', ...guards.flatMap(({ edits }) => edits.filter((one) => !inSql(one)).map(({ file }) => file))]);

// What is in git or may come into it, as it is now. Files that did not change keep their time.
function copy() {
  const names = execFileSync('git', ['ls-files', '-z', '-co', '--exclude-standard'], { cwd: root, encoding: 'utf8', maxBuffer: 1 << 26 })
    .split('\0').filter((name) => name && existsSync(path.join(root, name)));
  const wanted = new Set(names);
  for (const name of existsSync(tree) ? readdirSync(tree, { recursive: true }) : []) {
    const file = path.join(tree, name);
    if (!name.startsWith('build') && !wanted.has(name) && existsSync(file) && statSync(file).isFile()) rmSync(file);
  }
  for (const name of names) {
    const [from, to] = [path.join(root, name), path.join(tree, name)];
    let text = readFileSync(from);
    if (seamed.has(name)) text = Buffer.from(seam(name, text.toString(), guards));
    if (existsSync(to) && readFileSync(to).equals(text)) continue;
    mkdirSync(path.dirname(to), { recursive: true });
    writeFileSync(to, text, { mode: statSync(from).mode });
  }
}

async function compile(programs) {
  const { GUARDS_JOBS: jobs = 2, GUARDS_NICE: nice = 12 } = process.env;
  const made = await run('nice', ['-n', `${nice}`, 'ninja', '-C', build, `-j${jobs}`, ...programs], { env });
  if (made.code !== 0) throw new Error(`it does not compile:\n${made.text.slice(-4000)}`);
}

const escaped = (name) => name.replace(/[\\,[\]"]/g, '\\$&');
const catch2 = (program, postgres, args, more) => {
  const whole = [...(postgres ? [cluster] : []), path.join(build, program), ...args, '-w', 'NoAssertions'];
  return run(whole[0], whole.slice(1), { env: { ...env, ...more } });
};

// With nothing taken out every test passes.
async function baseline(chosen) {
  for (const program of new Set(chosen.map(({ test }) => test.program))) {
    const tests = chosen.map(({ test }) => test).filter((test) => test.program === program);
    const names = new Set(tests.map(({ name }) => escaped(name)));
    const { code, text } = await catch2(program, tests[0].postgres, [[...names].join(',')]);
    const count = text.match(/All tests passed \([0-9]+ assertions? in ([0-9]+) test cases?\)/)?.[1];
    if (code !== 0 || Number(count) !== names.size) throw new Error(`with nothing taken out, ${program} does not pass its ${names.size} tests:\n${text.slice(-4000)}`);
    console.log(`ok   with nothing taken out: ${names.size} test cases of ${path.basename(program)}`);
  }
}

// Catch2 counts what ran: a name that matches nothing, or a section that is not there, is no test.
async function mustFail({ program, name, section, postgres }, more) {
  const { code, text, late } = await catch2(program, postgres, [escaped(name), ...(section ? ['-c', section] : [])], more);
  if (late) throw new Error('the test does not end');
  if (code === 0) throw new Error('the test still passes');
  const failed = /test cases: +1 \|(?: +[0-9]+ passed \|)? +1 failed/.test(text) && !/No assertions in/.test(text);
  if (!failed) throw new Error(`the test ended with ${code} and no count of what failed:\n${text.slice(-2000)}`);
}

const label = ({ program, name, section }) => `${path.basename(program)}: ${section ?? name}`;

// The one that is chosen by its name, or the texts of SQL that are read instead.
function without({ name, edits }) {
  const folder = path.join(tree, 'build/changed', name);
  rmSync(folder, { recursive: true, force: true });
  const texts = new Map();
  for (const edit of edits.filter(inSql)) {
    texts.set(edit.file, change(texts.get(edit.file) ?? readFileSync(path.join(tree, edit.file), 'utf8'), edit));
  }
  for (const [file, text] of texts) {
    mkdirSync(path.dirname(path.join(folder, file)), { recursive: true });
    writeFileSync(path.join(folder, file), text);
  }
  return { [nameOfGuard]: name, [folderOfSql]: path.join(folder, 'sql') };
}

async function walk(chosen) {
  copy();
  if (!existsSync(path.join(build, 'build.ninja'))) {
    const made = await run('cmake', ['--preset', 'release'], { env });
    if (made.code !== 0) throw new Error(made.text);
  }
  await compile([...new Set(chosen.map((one) => one.test.program))]);
  await baseline(chosen);
  let bad = 0;
  const left = [...chosen];
  const lane = async () => {
    for (let one = left.shift(); one; one = left.shift()) {
      const begun = Date.now();
      const problem = await mustFail(one.test, without(one)).then(() => '', (error) => { bad += 1; return `: ${error.message}`; });
      console.log(`${problem ? 'FAIL' : 'ok  '} guard ${one.name} (${((Date.now() - begun) / 1000).toFixed(0)} s): ${label(one.test)}${problem}`);
    }
  };
  await Promise.all([lane(), lane()]);
  console.log(`${chosen.length} guards taken out, ${bad} without a test that failed`);
  return bad === 0;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean' }, write: { type: 'boolean' }, list: { type: 'boolean' }, help: { type: 'boolean' } },
});
const matches = (pattern, name) => (pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern);
const unknown = positionals.filter((pattern) => !guards.some(({ name }) => matches(pattern, name)));
if (values.help) {
  console.log(usage);
} else if (unknown.length) {
  console.error(`no guard is called ${unknown.join(', ')}; ./dev guards --list names them`);
  process.exitCode = 2;
} else if (values.list) {
  console.log(guards.map(({ name }) => name).join('\n'));
} else {
  if (values.write) table.write();
  const problems = check();
  for (const problem of problems) console.log(`FAIL ${problem}`);
  if (!problems.length) console.log(`ok   guards: ${guards.length} edits apply, their tests are there`);
  if (problems.length) process.exitCode = 1;
  else if (!values.check && !values.write) {
    const chosen = positionals.length ? guards.filter(({ name }) => positionals.some((p) => matches(p, name))) : guards;
    if (!await walk(chosen)) process.exitCode = 1;
  }
}
