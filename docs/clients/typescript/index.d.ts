import type { ClientBase, Pool } from 'pg';

export type Status = 'pending' | 'scheduled' | 'attempting' | 'unknown' | 'succeeded' | 'failed' | 'cancelled';
export type Cancelled = 'cancelled' | 'too_late' | 'already_cancelled' | 'already_failed' | 'not_found';
export type Json = null | boolean | number | bigint | string | readonly Json[] | { readonly [name: string]: Json | undefined };
export type Arguments = { readonly [name: string]: Json | undefined };

/** One operation as the outbox knows it. `failed` means: there was no effect. */
export interface Receipt<Result = unknown> {
  readonly operationId: string;
  readonly status: Status;
  /** Nothing more will happen by itself. Otherwise: do not send it again, do not assume failure. */
  readonly final: boolean;
  /** true: it was known already, nothing was executed again. null from get, wait. */
  readonly replayed: boolean | null;
  readonly result: Result | null;
  readonly error: { readonly code?: string; readonly message?: string; readonly [name: string]: unknown } | null;
  /** One sentence for a model. */
  readonly message: string;
  readonly createdAt: Date;
  readonly compensatedBy: string | null;
  readonly resultExpired: boolean;
}

export interface Operation<Result = unknown> extends Receipt<Result> {
  readonly tool: string;
  readonly runId: string | null;
  readonly attempts: number;
  readonly attemptEpoch: number | null;
  readonly startedAt: Date | null;
  readonly finishedAt: Date | null;
  readonly compensates: string | null;
  /** Why a person must look. */
  readonly attention: string | null;
}

export interface EnqueueOptions {
  /** Explicit id; otherwise it is derived from tool, arguments and run. */
  operationId?: string;
  /** Default: the run of withRun. */
  runId?: string;
  /** 2 for a second intended identical call in one run. */
  occurrence?: number;
  /** −100 (first) to 100; default 0. */
  priority?: number;
  /** Not before. */
  runAt?: Date;
  /** Never start an attempt after. */
  expiresAt?: Date;
  maxAttempts?: number;
  traceparent?: string;
  labels?: Readonly<Record<string, string>>;
  /** If it is recorded as failed (no effect), arm it again. */
  retryFailed?: boolean;
}

/** Records the intent in the client's transaction; it exists when that commits. A pool is refused. */
export function enqueue(client: ClientBase, tool: string, args?: Arguments, options?: EnqueueOptions): Promise<Receipt>;
/** All or none of them, answered in their order. */
export function enqueueMany(
  client: ClientBase, requests: Iterable<EnqueueOptions & { tool: string; arguments?: Arguments }>): Promise<Receipt[]>;
/** The operation as it is now; null when the id is unknown. */
export function get<Result = unknown>(client: ClientBase | Pool, operationId: string): Promise<Operation<Result> | null>;
/** Takes back what has not been attempted. too_late: it may happen, or has happened. */
export function cancel(client: ClientBase, operationId: string, reason?: string | null): Promise<Cancelled>;
/** Undoes an operation by the tool's named compensation, itself an operation that runs once. */
export function compensate(
  client: ClientBase, operationId: string, options?: { name?: string; arguments?: Arguments; reason?: string }): Promise<Receipt>;
/**
 * The operation when it is final, or as it is when the time has passed: that raises nothing, look at
 * `final`. null when the id is unknown to the end. Rejects with InTransaction when the client has an
 * open transaction.
 */
export function wait<Result = unknown>(
  client: ClientBase | Pool, operationId: string, options?: { timeoutMs?: number; pollMs?: number }): Promise<Operation<Result> | null>;
/** Runs work in a transaction, and again after 40001 and 40P01. */
export function retryTransaction<T, C extends ClientBase>(
  client: C, work: (client: C) => Promise<T>,
  options?: { attempts?: number; isolation?: 'read committed' | 'repeatable read' | 'serializable' }): Promise<T>;
/** Enqueues inside belong to this run. Its id must be the same when the run is resumed after a crash. */
export function withRun<T>(runId: string, work: () => T): T;
export function currentRun(): string | undefined;
/** A tool as a typed function. */
export function action<A extends object>(
  tool: string, options?: EnqueueOptions): (client: ClientBase, args: A, options?: EnqueueOptions) => Promise<Receipt>;
/** What a tool call should return to the model. */
export function forModel(receipt: Receipt): { status: Status; message: string; result?: unknown; error?: unknown };

/** A request that the outbox refused. Like every SQL error it aborts the transaction. */
export class OutboxError extends Error {
  readonly code: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
}
/** OB400 */
export class BadRequest extends OutboxError {}
/** OB404: no such tool, no such compensation of it, or no such operation to undo */
export class UnknownTool extends OutboxError {}
/** OB410 */
export class ResultExpired extends OutboxError {}
/** OB413 */
export class TooLarge extends OutboxError {}
/** OB422 */
export class IdConflict extends OutboxError {}
/** The call needs a connection without an open transaction. */
export class InTransaction extends Error {}
