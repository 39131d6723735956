-- A compose app: its file inline, or where it is in the repository.
ALTER TABLE apps ADD COLUMN compose TEXT;
ALTER TABLE apps ADD COLUMN compose_path TEXT;

-- Environment and files of each service of a release, sealed.
ALTER TABLE releases ADD COLUMN services TEXT;

-- The service of a compose app that a domain leads to; NULL for the one that has the app's own name.
ALTER TABLE domains ADD COLUMN service TEXT;

-- Services of compose apps, as the newest release has them.
CREATE TABLE services (
  id TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  name TEXT NOT NULL,
  -- 1 while somebody has stopped it.
  stopped INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  UNIQUE (app_id, name)
) STRICT;
CREATE INDEX services_by_project ON services (project_id);
