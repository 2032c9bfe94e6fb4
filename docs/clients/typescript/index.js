// A thin client of outboxd on pg. Every call but wait and retryTransaction joins the transaction of
// the client it is given, and neither commits nor opens one.
export { action, cancel, compensate, currentRun, enqueue, enqueueMany, forModel, get, withRun } from './calls.js';
export { BadRequest, IdConflict, InTransaction, OutboxError, ResultExpired, TooLarge, UnknownTool } from './errors.js';
export { retryTransaction } from './retry.js';
export { wait } from './wait.js';
