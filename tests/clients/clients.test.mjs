// Each client's own tests, beside a real Postgres and a real daemon; and the programs that its README
// shows, run as they stand there.
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { run } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { blocks, planner, pooler, root } from './world.mjs';

const python = { PYTHONPATH: path.join(root, 'docs/clients/python'), PYTHONDONTWRITEBYTECODE: '1' };
const python3 = '/usr/bin/python3';  // Debian's, which has psycopg

async function passes(file, args, options) {
  const { code, text, out } = await run(file, args, { timeout: 280_000, ...options });
  assert.equal(code, 0, text);
  return { out, text };
}

const write = (file, content) => { writeFileSync(file, content); return file; };

// A client's story: `body` gets the environment, and a pooler's port in it.
function client(name, body) {
  story(name, async (w) => {
    const env = await planner(w);
    const bouncer = await pooler(w, env);
    try {
      await body(w, { ...env, POOLER_PORT: bouncer.port });
    } finally {
      await bouncer.stop();
    }
  }, { timeout: 300_000 });
}

// What a client undid was undone once, however often it asked.
async function undone(w, ...ids) {
  const { closes } = await w.desk.state();
  assert.deepEqual(closes.map((c) => c.operation_id).sort(), ids.map((id) => `${id}:compensate:close`).sort());
}

client('python: every call, sync and async', async (w, env) => {
  await w.desk.plan('py-refused', { posts: ['refuse', 'ok'] });
  const { text } = await passes(python3, [path.join(root, 'tests/clients/python/test_client.py'), '-v'], { env: { ...env, ...python } });
  assert.match(text, /^Ran \d\d tests/m, text);
  assert.doesNotMatch(text, /skipped/);
  await undone(w, 'py-test_compensate', 'py-async-undo');
});

test('python: types, of the package and of what its README shows', async () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-mypy-'));
  try {
    const examples = blocks('docs/clients/python/README.md', 'python').map((text, i) => write(path.join(dir, `example_${i}.py`), text));
    for (const files of [[path.join(python.PYTHONPATH, 'outboxd_client')], examples]) {
      await passes('mypy', ['--strict', '--cache-dir', path.join(dir, 'cache'), ...files], { env: { PATH: process.env.PATH, MYPYPATH: python.PYTHONPATH }, cwd: dir });
    }
  } finally {
    rmSync(dir, { recursive: true });
  }
}, { timeout: 300_000 });

client('python: what its README shows, with the package installed', async (w, env) => {
  // Built from a copy: pip leaves its own folders beside the source.
  const source = path.join(w.dir, 'source');
  cpSync(path.join(root, 'docs/clients/python'), source, { recursive: true });
  const site = path.join(w.dir, 'site');
  await passes(python3, ['-m', 'pip', 'install', '--quiet', '--no-deps', '--no-index', '--no-build-isolation', '--target', site, source],
    { env: { ...w.env, PIP_ROOT_USER_ACTION: 'ignore', PIP_DISABLE_PIP_VERSION_CHECK: '1' } });
  assert.ok(existsSync(path.join(site, 'outboxd_client/py.typed')));
  const said = [];
  for (const [i, text] of blocks('docs/clients/python/README.md', 'python').entries()) {
    said.push((await passes(python3, [w.write(`example_${i}.py`, text)], { env: { ...env, PYTHONPATH: site } })).out);
  }
  assert.match(said[0], /This action is recorded.*\nsucceeded .*T-/s);
  assert.match(said[1], /True/);
  assert.match(said[2], /succeeded/);
});

client('typescript: every call', async (w, env) => {
  await w.desk.plan('ts-refused', { posts: ['refuse', 'ok'] });
  const { text } = await passes(process.execPath, ['--test', path.join(root, 'tests/clients/typescript/client.test.mjs')], { env });
  assert.match(text, /^(#|ℹ) pass 1\d$/m, text);
  await undone(w, 'ts-undo');
});

test('typescript: types', async () => {
  const tsc = path.join(root, 'docs/clients/typescript/node_modules/typescript/bin/tsc');
  await passes(process.execPath, [tsc, '-p', path.join(root, 'tests/clients/typescript/tsconfig.json')], {});
}, { timeout: 300_000 });

client('typescript: what its README shows, with the package as npm packs it', async (w, env) => {
  const modules = path.join(w.dir, 'node_modules/outboxd-client');
  mkdirSync(modules, { recursive: true });
  const packed = await passes('npm', ['pack', '--silent', '--pack-destination', w.dir, path.join(root, 'docs/clients/typescript')], { env: { ...w.env, npm_config_update_notifier: 'false' } });
  await passes('tar', ['-xzf', path.join(w.dir, packed.out.trim()), '-C', modules, '--strip-components=1'], {});
  symlinkSync(path.join(root, 'tests/e2e/node_modules/pg'), path.join(w.dir, 'node_modules/pg'));
  const said = [];
  for (const [i, text] of blocks('docs/clients/typescript/README.md', 'js').entries()) {
    said.push((await passes(process.execPath, [w.write(`example_${i}.mjs`, text)], { env, cwd: w.dir })).out);
  }
  assert.match(said[0], /This action is recorded.*\nsucceeded .*T-/s);
  assert.match(said[1], /true/);
});

client('cpp: every call, as a subdirectory and as a package', async (w, env) => {
  await w.desk.plan('cpp-refused', { posts: ['refuse', 'ok'] });
  const source = path.join(root, 'docs/clients/cpp');
  const outside = path.join(root, 'tests/clients/cpp');
  const example = w.write('example.cpp', blocks('docs/clients/cpp/README.md', 'cpp')[0]);
  const cache = ['/usr/bin/ccache'].filter(existsSync).map((ccache) => `-DCMAKE_CXX_COMPILER_LAUNCHER=${ccache}`);
  const build = async (name, from, ...options) => {
    const dir = path.join(w.dir, name);
    const tools = { env: { ...process.env, CCACHE_BASEDIR: w.dir } };
    await passes('cmake', ['-S', from, '-B', dir, '-G', 'Ninja', '-DCMAKE_BUILD_TYPE=Debug', ...cache, ...options], tools);
    await passes('cmake', ['--build', dir], tools);
    return dir;
  };
  const beside = await build('beside', outside, `-DOUTBOXD_CLIENT_SOURCE=${source}`, `-DEXAMPLE=${example}`);
  const { out } = await passes(path.join(beside, 'client_test'), [], { env });
  assert.equal(out.split('\n').filter((line) => line.startsWith('ok ')).length, 10, out);
  await undone(w, 'cpp-undo');

  const prefix = path.join(w.dir, 'prefix');
  const alone = await build('alone', source, `-DCMAKE_INSTALL_PREFIX=${prefix}`);
  await passes('cmake', ['--install', alone], {});
  const installed = await build('installed', outside, `-DCMAKE_PREFIX_PATH=${prefix}`, `-DEXAMPLE=${example}`);
  const shown = await passes(path.join(installed, 'example'), [], { env });
  assert.match(shown.out, /succeeded/);
});
