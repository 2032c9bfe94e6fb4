-- A graceful stop: nobody need wait for this worker's heartbeat. $1 worker uuid.
UPDATE outbox.worker SET stopped_at = now(), heartbeat_at = now() WHERE worker = $1::uuid
