// Where a guard's test lives: the program, as ninja names it, the case, and the section of it.
const catch2 = (program, more = {}) => (name, section) => ({ program, name, section, ...more });

export const core = catch2('tests/unit/core/unit_core');
export const tools = catch2('tests/unit/tools/unit_tools');
export const http = catch2('tests/http/http_tests');
export const sql = catch2('tests/pg/pg_tests', { postgres: true });
export const store = catch2('tests/pg/store_pg_tests', { postgres: true });
export const contract = (section) => store('the store on Postgres keeps the store contract', section);
// Only where no fixed test can: so many seeds of the simulation, from the first one on.
export const sim = (seeds, first = 1) => ({
  program: 'tests/sim/sim_tests',
  name: 'a hostile world: at most one effect, nothing lost, no lie',
  env: { OUTBOXD_SIM_SEEDS: `${seeds}`, OUTBOXD_SIM_FIRST: `${first}` },
});

// One guard and how it is taken out: `find` stands once in the file, and becomes `put`.
export const guard = (name, says, file, find, put, test) => ({ name, says, edits: [{ file, find, put }], test });
// One that is kept twice, so both are taken out together.
export const twice = (name, says, edits, test) => ({ name, says, edits: edits.map(([file, find, put]) => ({ file, find, put })), test });
