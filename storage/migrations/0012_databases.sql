CREATE TABLE databases (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  name TEXT NOT NULL,
  engine TEXT NOT NULL,
  version TEXT NOT NULL,
  -- Image that the version stands for; fixed until the version is changed. Null: looked up at the next start.
  image_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('creating', 'running', 'stopped', 'failed', 'restoring', 'upgrading', 'deleting')),
  last_error TEXT,
  -- Name of the database inside the server.
  database_name TEXT NOT NULL,
  -- Counts changes of credentials; engines whose logins alternate name them by it.
  generation INTEGER NOT NULL DEFAULT 1,
  -- Sealed. The next one is valid beside the current one before it is handed out, the previous one until all follow.
  password TEXT NOT NULL,
  next_password TEXT,
  previous_password TEXT,
  admin_password TEXT NOT NULL,
  volume_id TEXT NOT NULL UNIQUE,
  -- Set once the volume was made: one that is missing after that is lost, and no empty one takes its place.
  volume_made INTEGER NOT NULL DEFAULT 0,
  -- Data from before an upgrade or a restore, kept until somebody confirms.
  previous_volume_id TEXT,
  previous_version TEXT,
  used_bytes INTEGER,
  cpus REAL NOT NULL,
  memory_bytes INTEGER NOT NULL,
  public_port INTEGER UNIQUE,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  UNIQUE (project_id, name)
) STRICT;

CREATE TABLE database_links (
  database_id TEXT NOT NULL REFERENCES databases (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  -- Variable of the app that gets the connection string.
  key TEXT NOT NULL,
  created_at TEXT NOT NULL,
  PRIMARY KEY (database_id, app_id),
  UNIQUE (app_id, key)
) STRICT;

-- Servers on volumes of their own, where a dump is restored before it takes the place of anything.
CREATE TABLE database_spares (
  volume_id TEXT PRIMARY KEY,
  database_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;

-- Events of one database, in their order.
CREATE INDEX events_database ON events (payload ->> 'database_id', seq) WHERE payload ->> 'database_id' IS NOT NULL;
