-- Days that a database can go back; null while its log is not archived.
ALTER TABLE databases ADD COLUMN archive_days INTEGER;
ALTER TABLE databases ADD COLUMN archive_destination_id TEXT;
ALTER TABLE databases ADD COLUMN archive_encrypted INTEGER NOT NULL DEFAULT 1;

-- The log of one volume at one destination, from a copy of its files on, without a gap. Another one begins with
-- another volume, another destination or after a gap.
CREATE TABLE log_archives (
  id TEXT PRIMARY KEY,
  database_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  volume_id TEXT NOT NULL,
  destination_id TEXT NOT NULL REFERENCES storage_providers (id),
  encrypted INTEGER NOT NULL,
  -- Sealed: the key of everything in this archive; null when nothing is encrypted.
  data_key TEXT,
  version TEXT NOT NULL,
  -- Name of the database inside the server.
  database_name TEXT NOT NULL,
  days INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('active', 'closed')),
  -- Changes with every commit.
  mark TEXT,
  -- A piece that was ended and did not reach the destination yet, and up to when it holds everything.
  cut_piece TEXT,
  cut_at TEXT,
  -- Everything that was committed until then is at the destination.
  complete_until TEXT,
  last_archived_at TEXT,
  waiting_bytes INTEGER NOT NULL DEFAULT 0,
  -- Since when it does not work, and why.
  failing_since TEXT,
  told_at TEXT,
  error TEXT,
  created_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX log_archives_active ON log_archives (database_id) WHERE status = 'active';
CREATE INDEX log_archives_database ON log_archives (database_id);
CREATE INDEX log_archives_destination ON log_archives (destination_id);

-- Copies of all files of a server, which the log makes whole.
CREATE TABLE log_copies (
  id TEXT PRIMARY KEY,
  archive_id TEXT NOT NULL REFERENCES log_archives (id) ON DELETE CASCADE,
  status TEXT NOT NULL CHECK (status IN ('copying', 'ready', 'failed')),
  object_key TEXT NOT NULL,
  -- Pieces of the log from this one on are needed.
  first_piece TEXT NOT NULL,
  -- Oldest moment that it can be brought to.
  ready_at TEXT,
  size_bytes INTEGER,
  original_bytes INTEGER,
  sha256 TEXT,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX log_copies_archive ON log_copies (archive_id);

CREATE TABLE log_pieces (
  archive_id TEXT NOT NULL REFERENCES log_archives (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  original_bytes INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  -- Up to when this piece and those before it hold everything; null when that was not looked at.
  complete_until TEXT,
  archived_at TEXT NOT NULL,
  PRIMARY KEY (archive_id, name)
) STRICT, WITHOUT ROWID;
