-- JSON: parts of an app that its backup leaves out, because a deletion does not touch them; null for none.
ALTER TABLE backups ADD COLUMN without TEXT;
