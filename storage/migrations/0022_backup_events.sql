-- What the channel of a backup reads.
CREATE INDEX events_backup ON events (payload ->> 'backup_id', seq) WHERE payload ->> 'backup_id' IS NOT NULL;
