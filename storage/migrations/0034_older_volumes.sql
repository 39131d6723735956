-- Data from before the last but one replacement of a database, the newest last: nothing is dropped by another one.
CREATE TABLE database_older_volumes (
  volume_id TEXT PRIMARY KEY,
  database_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  version TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX database_older_volumes_database ON database_older_volumes (database_id);
