// Writes the manual page (docs/outboxd.8) and the bash completion (config/completions/outboxd) from
// what `outboxd COMMAND --help` says, so that neither can know less or other than the program.
//   node docs/manual.mjs [--check]        OUTBOXD names the binary
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const binary = process.env.OUTBOXD ?? path.join(root, 'build/release/outboxd');

// "  -c,--config FILE   text" lines of one section; a name that is too long has its text below.
function entries(lines) {
  const found = [];
  for (const line of lines) {
    const [, name, text] = /^ {2}(\S.*?)(?: {2,}(.*))?$/.exec(line) ?? [];
    if (name) found.push({ name, text: text ?? '' });
    else if (found.length) found.at(-1).text = `${found.at(-1).text} ${line.trim()}`.trim();
  }
  return found;
}

export function parseHelp(text) {
  const lines = text.trimEnd().split('\n');
  const usage = lines.findIndex((line) => line.startsWith('Usage: '));
  const help = { about: lines.slice(0, usage).join(' '), usage: lines[usage].slice('Usage: '.length), footer: [] };
  let rest = lines.slice(usage + 1);
  for (const section of ['Positionals', 'Options', 'Subcommands']) {
    const start = rest.indexOf(`${section}:`);
    if (start < 0) continue;
    const end = rest.indexOf('', start) < 0 ? rest.length : rest.indexOf('', start);
    help[section.toLowerCase()] = entries(rest.slice(start + 1, end));
    rest = [...rest.slice(0, start), ...rest.slice(end + 1)];
  }
  help.footer = rest.join('\n').trim().split('\n');
  // "--label K=V ..." → names and whether a value follows.
  help.options = (help.options ?? []).map((option) => {
    const [names, ...value] = option.name.split(' ');
    return { ...option, names: names.split(','), value: value.filter((v) => v !== 'REQUIRED' && v !== '...').join(' ') };
  });
  return help;
}

export function commands() {
  const ask = (...args) => parseHelp(execFileSync(binary, [...args, '--help'], { encoding: 'utf8' }));
  const app = ask();
  return { app, all: app.subcommands.map(({ name, text }) => ({ name, text, ...ask(name) })) };
}

// One line of roff: no accidental requests, plain hyphens and backslashes.
const roff = (text) => text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replace(/^([.'])/, '\\&$1');

const literal = (lines) => ['.PP', '.nf', ...lines.map(roff), '.fi'];

function section(command) {
  const out = [`.SS ${roff(command.name)}`, roff(command.about), '.PP', `.B ${roff(command.usage)}`];
  for (const { name, text } of command.positionals ?? []) out.push('.TP', `.I ${roff(name.split(' ')[0])}`, roff(text));
  for (const option of command.options) {
    out.push('.TP', `\\fB${roff(option.names.join(', '))}\\fR${option.value ? ` \\fI${roff(option.value)}\\fR` : ''}`, roff(option.text));
  }
  return [...out, ...literal(command.footer)];
}

export function manual({ app, all }) {
  return [
    '.\\" Written by docs/manual.mjs from outboxd --help.',
    '.TH OUTBOXD 8 "" "outboxd" "System administration"',
    '.SH NAME', 'outboxd \\- one planner step commits at most one side effect',
    '.SH SYNOPSIS', '.B outboxd', '.RI [ OPTIONS ] " COMMAND " [ ARGUMENTS ]',
    '.SH DESCRIPTION',
    'An intent is a row in a Postgres table, written in the planner\\(aqs own transaction. outboxd carries it out,',
    'records what became of it, and asks the other side about every attempt whose end nobody saw before',
    'anything is repeated.',
    '.SH OPTIONS',
    ...app.options.flatMap((option) => ['.TP', `\\fB${roff(option.names.join(', '))}\\fR${option.value ? ` \\fI${roff(option.value)}\\fR` : ''}`, roff(option.text)]),
    '.SH COMMANDS', ...all.flatMap(section),
    '.SH EXIT STATUS',
    ...[['0', 'done'], ['1', 'the answer is no: not found, failed, unhealthy, too late, stale, timed out waiting, aborted by a second signal'],
      ['2', 'usage'], ['3', 'configuration'], ['4', 'database unreachable'], ['5', 'schema too old or too new']]
      .flatMap(([code, text]) => ['.TP', `.B ${code}`, text]),
    '.SH ENVIRONMENT',
    '.TP', '.B OUTBOXD_DATABASE', 'The database, where \\fB\\-\\-database\\fR is not given.',
    '.TP', '.B CREDENTIALS_DIRECTORY', 'Where ${cred:name} of a configuration is read; systemd sets it.',
    '.SH SEE ALSO', '.BR psql (1),', '.BR systemd.service (5)', '',
  ].join('\n');
}

const values = {
  '--status': 'pending scheduled attempting unknown succeeded failed cancelled',
  '--verdict': 'applied not-applied',
};

export function completion({ app, all }) {
  const names = all.map((command) => command.name);
  const words = (command) => command.options.flatMap((option) => option.names).join(' ');
  const valued = [...new Set([app, ...all].flatMap((c) => c.options.filter((o) => o.value).flatMap((o) => o.names)))]
    .filter((name) => !values[name] && name !== '-c' && name !== '--config').sort();
  const files = all.filter((c) => (c.positionals ?? []).some((p) => p.name.split(' ')[1] === 'FILE')).map((c) => c.name);
  return `# bash completion for outboxd. Written by docs/manual.mjs from outboxd --help.
_outboxd() {
    local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]} word command='' words=''
    for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case $word in
        ${names.join('|')}) command=$word; break ;;
        esac
    done
    COMPREPLY=()
    case $prev in
${Object.entries(values).map(([option, list]) => `    ${option}) COMPREPLY=($(compgen -W '${list}' -- "$cur")); return ;;`).join('\n')}
    -c|--config) compopt -o filenames 2> /dev/null; COMPREPLY=($(compgen -f -- "$cur")); return ;;
    ${valued.join('|')}) return ;;
    esac
    case $command in
    '') words='${names.join(' ')} ${words(app)}' ;;
${all.map((c) => `    ${c.name}) words='${words(c)}' ;;`).join('\n')}
    esac
${files.length ? `    case $command in
    ${files.join('|')})
        if [[ $cur != -* ]]; then
            compopt -o filenames 2> /dev/null
            COMPREPLY=($(compgen -f -- "$cur"))
            return
        fi
        ;;
    esac
` : ''}    COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _outboxd outboxd
`;
}

export const files = (known) => ({ 'docs/outboxd.8': manual(known), 'config/completions/outboxd': completion(known) });

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  let stale = false;
  for (const [name, text] of Object.entries(files(commands()))) {
    const file = path.join(root, name);
    if (existsSync(file) && readFileSync(file, 'utf8') === text) continue;
    if (process.argv.includes('--check')) {
      console.error(`${name} is not what outboxd --help says: node docs/manual.mjs`);
      stale = true;
    } else {
      mkdirSync(path.dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
  }
  process.exitCode = stale ? 1 : 0;
}
