// The one dependency, for tests that live in other folders.
export { default } from 'pg';
