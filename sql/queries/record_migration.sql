-- The migration's row, written before its statements in the same transaction.
-- $1 number, $2 name, $3 checksum, $4 breaking. No row back: another migrator was first.
INSERT INTO outbox.migration (number, name, checksum, breaking)
VALUES ($1::integer, $2, $3, $4::boolean)
    ON CONFLICT (number) DO NOTHING
RETURNING number
