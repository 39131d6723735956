-- Whether anything could ever write to it: what nothing ever held needs no final backup.
ALTER TABLE volumes ADD COLUMN touched INTEGER NOT NULL DEFAULT 1;
