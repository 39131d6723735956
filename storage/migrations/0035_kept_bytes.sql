-- What the data from before restores and upgrades take on the disk, in bytes: they count for the project's quota.
ALTER TABLE databases ADD COLUMN previous_used_bytes INTEGER;
ALTER TABLE database_older_volumes ADD COLUMN used_bytes INTEGER;
