CREATE TABLE volumes (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('creating', 'ready', 'missing', 'deleting')),
  access TEXT NOT NULL CHECK (access IN ('single_writer', 'shared')),
  -- What it is meant to hold; null for no limit.
  size_bytes INTEGER,
  -- What it held when it was measured.
  used_bytes INTEGER,
  measured_at TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX volumes_name ON volumes (project_id, name);

-- What an app has in its next release: a volume, or a file whose text is kept here, sealed. Never changed, only
-- made and removed.
CREATE TABLE mounts (
  id TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  path TEXT NOT NULL,
  volume_id TEXT REFERENCES volumes (id),
  read_only INTEGER NOT NULL DEFAULT 0,
  content TEXT,
  content_bytes INTEGER,
  mode INTEGER,
  created_at TEXT NOT NULL,
  CHECK ((volume_id IS NULL) <> (content IS NULL))
) STRICT;
CREATE UNIQUE INDEX mounts_path ON mounts (app_id, path);
CREATE INDEX mounts_volume ON mounts (volume_id) WHERE volume_id IS NOT NULL;

-- Sealed JSON of the inline files of a release; null for a release without any.
ALTER TABLE releases ADD COLUMN files TEXT;

-- Why the app does not run; null while it does.
ALTER TABLE apps ADD COLUMN last_error TEXT;
