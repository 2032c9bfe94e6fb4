// Where a guard's test lives: the program, as ninja names it, the case, and the section of it.
const catch2 = (program, more = {}) => (name, section) => ({ program, name, section, ...more });

export const core = catch2('tests/unit/core/unit_core');
export const tools = catch2('tests/unit/tools/unit_tools');
export const http = catch2('tests/http/http_tests');
export const sql = catch2('tests/pg/pg_tests', { postgres: true });
export const store = catch2('tests/pg/store_pg_tests', { postgres: true });
export const contract = (section) => store('the store on Postgres keeps the store contract', section);
// One guard and how it is taken out: `find` stands once in the file, and becomes `put`; with « and » in
// it, what is between them does. In C++ that is an expression, or a statement (it ends with a semicolon).
export const guard = (name, says, file, find, put, test) => ({ name, says, edits: [{ file, find, put }], test });
// One that is kept twice, so both are taken out together.
export const twice = (name, says, edits, test) => ({ name, says, edits: edits.map(([file, find, put]) => ({ file, find, put })), test });
