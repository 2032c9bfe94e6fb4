// In the copy, and only there, a program reads a statement or migration from $OUTBOX_GUARDS_SQL where
// such a file is: a guard that stands in SQL is taken out without a build.
export const variable = 'OUTBOX_GUARDS_SQL';
const edits = [
  ['#include <array>\\n\\nnamespace outbox::sql {\\n\\n")', `#include <array>\\n#include <cstdlib>\\n#include <fstream>\\n#include <iterator>\\n\\nnamespace outbox::sql {\\n\\nnamespace {\\n\\n"
"std::string changed(const char* file, std::string text) {\\n    if (const char* folder = std::getenv(\\"${variable}\\")) {\\n"
"        std::ifstream in(std::string(folder) + '/' + file);\\n        if (in) return {std::istreambuf_iterator<char>(in), {}};\\n    }\\n"
"    return text;\\n}\\n\\n}  // namespace\\n\\n")`.replaceAll('"\n"', '')],
  ['const std::string ${name} = R\\"sql(${text})sql\\";', 'const std::string ${name} = changed(\\"queries/${name}.sql\\", R\\"sql(${text})sql\\");'],
  ['Migration{${number}, \\"${name}\\", R\\"sql(${text})sql\\",', 'Migration{${number}, \\"${name}\\", changed(\\"migrations/${name}.sql\\", R\\"sql(${text})sql\\"),'],
];

export function seam(name, text) {
  if (name !== 'sql/embed.cmake') return text;
  let changed = text.toString();
  for (const [find, put] of edits) {
    if (changed.split(find).length !== 2) throw new Error(`the seam does not fit sql/embed.cmake any more: ${find}`);
    changed = changed.replace(find, () => put);
  }
  return Buffer.from(changed);
}
