// What the copy of the tree has that the tree has not: every guard can be taken out of its programs
// without another build. A text of SQL is read from $OUTBOX_GUARDS_SQL where such a file is; an
// expression or a statement of C++ is chosen by $OUTBOX_GUARD.
export const folderOfSql = 'OUTBOX_GUARDS_SQL';
export const nameOfGuard = 'OUTBOX_GUARD';

const embed = [
  ['#include <array>\\n\\nnamespace outbox::sql {\\n\\n")', `#include <array>\\n#include <cstdlib>\\n#include <fstream>\\n#include <iterator>\\n\\nnamespace outbox::sql {\\n\\nnamespace {\\n\\n"
"std::string changed(const char* file, std::string text) {\\n    if (const char* folder = std::getenv(\\"${folderOfSql}\\")) {\\n"
"        std::ifstream in(std::string(folder) + '/' + file);\\n        if (in) return {std::istreambuf_iterator<char>(in), {}};\\n    }\\n"
"    return text;\\n}\\n\\n}  // namespace\\n\\n")`.replaceAll('"\n"', '')],
  ['const std::string ${name} = R\\"sql(${text})sql\\";', 'const std::string ${name} = changed(\\"queries/${name}.sql\\", R\\"sql(${text})sql\\");'],
  ['Migration{${number}, \\"${name}\\", R\\"sql(${text})sql\\",', 'Migration{${number}, \\"${name}\\", changed(\\"migrations/${name}.sql\\", R\\"sql(${text})sql\\"),'],
];

// « and » say which part of a text changes, where it is not all of it.
export const inSql = ({ file }) => file.startsWith('sql/');
export const plain = (find) => find.replace(/[«»]/g, '');
const marked = (find) => {
  const [before, , rest] = find.split(/([«])/);
  return rest === undefined ? { at: 0, text: find } : { at: before.length, text: rest.split('»')[0] };
};

// An edit of SQL, as it becomes.
export function change(text, { find, put }) {
  const { at, text: old } = marked(find);
  const from = text.indexOf(plain(find)) + at;
  return text.slice(0, from) + put + text.slice(from + old.length);
}

function switches(text, edits) {
  const spans = new Map();
  for (const { name, find, put } of edits) {
    const { at, text: old } = marked(find);
    const from = text.indexOf(plain(find)) + at;
    if (!spans.has(from)) spans.set(from, { old, puts: [] });
    const span = spans.get(from);
    if (span.old !== old) throw new Error(`guard ${name}: another guard changes a part of the same text`);
    span.puts.push({ name, put });
  }
  let end = text.length;
  for (const [from, { old, puts }] of [...spans].sort(([a], [b]) => b - a)) {
    if (from + old.length > end) throw new Error(`guard ${puts[0].name}: its text overlaps with another guard's`);
    end = from;
    const statement = old.endsWith(';');
    const switched = statement
      ? puts.map(({ name, put }) => `if (::guards::out("${name}")) { ${put} } else `).join('') + `{ ${old} }`
      : `(${puts.map(({ name, put }) => `::guards::out("${name}") ? (${put}) : `).join('')}(${old}))`;
    text = text.slice(0, from) + switched + text.slice(from + old.length);
  }
  return `#include "tests/guards/switch.hpp"\n${text}`;
}

export function seam(file, text, guards) {
  if (file === 'sql/embed.cmake') {
    return embed.reduce((changed, [find, put]) => {
      if (changed.split(find).length !== 2) throw new Error(`the seam does not fit sql/embed.cmake any more: ${find}`);
      return changed.replace(find, () => put);
    }, text);
  }
  const edits = guards.flatMap(({ name, edits: all }) => all.filter((one) => one.file === file && !inSql(one)).map((one) => ({ name, ...one })));
  return edits.length ? switches(text, edits) : text;
}
