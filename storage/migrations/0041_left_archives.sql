-- 1 while something of a backup that failed may lie at its destination.
ALTER TABLE backups ADD COLUMN is_left INTEGER NOT NULL DEFAULT 0;
CREATE INDEX backups_left ON backups (id) WHERE is_left = 1;
