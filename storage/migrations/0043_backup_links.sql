-- Apps that a database was linked to when it was deleted, which its final backup brings back; JSON.
ALTER TABLE backups ADD COLUMN links TEXT;
