// What the outbox refuses, as errors: detail says what is wrong, hint the way out. Like every SQL
// error they abort the transaction: roll back, or to a savepoint. A duplicate is not an error.

export class OutboxError extends Error {
  constructor(cause) {
    super([cause.message, cause.detail, cause.hint].filter(Boolean).join('\n'), { cause });
    this.name = new.target.name;
    this.code = cause.code;
    this.detail = cause.detail;
    this.hint = cause.hint;
  }
}

export class BadRequest extends OutboxError {}
export class UnknownTool extends OutboxError {}
export class ResultExpired extends OutboxError {}
export class TooLarge extends OutboxError {}
export class IdConflict extends OutboxError {}

const byCode = { OB400: BadRequest, OB404: UnknownTool, OB410: ResultExpired, OB413: TooLarge, OB422: IdConflict };

// The outbox's own error in place of the driver's; any other as it is.
export const refused = (error) =>
  (typeof error?.code === 'string' && error.code.startsWith('OB') ? new (byCode[error.code] ?? OutboxError)(error) : error);

export class InTransaction extends Error {
  constructor(what) {
    super(`${what} needs a connection without an open transaction: what this one has enqueued exists for the daemon `
      + 'when it is committed. COMMIT first, or pass another connection or a pool.');
    this.name = 'InTransaction';
  }
}
