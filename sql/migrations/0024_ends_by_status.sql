-- Ends without effect by tool, in place of one over all tools; and what is flagged, in the order of lists.
CREATE INDEX outcome_ends ON outbox.outcome (outcome, tool, seq) WHERE outcome <> 'succeeded';
DROP INDEX outbox.outcome_without_effect;
CREATE INDEX outcome_flagged ON outbox.outcome (seq) WHERE attention IS NOT NULL;
DROP INDEX outbox.outcome_attention_idx;
