-- Variables of apps, and with app_id NULL those that a project shares. Every value is sealed, secret or not.
CREATE TABLE variables (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  app_id TEXT REFERENCES apps (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  -- Sealed value for previews; null: the same.
  preview_value TEXT,
  secret INTEGER NOT NULL,
  build INTEGER NOT NULL,
  runtime INTEGER NOT NULL,
  comment TEXT,
  -- JSON list of what its values stand for, such as "project.KEY".
  refs TEXT NOT NULL DEFAULT '[]',
  version INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX variables_app ON variables (app_id, key) WHERE app_id IS NOT NULL;
CREATE UNIQUE INDEX variables_shared ON variables (project_id, key) WHERE app_id IS NULL;
CREATE INDEX variables_project ON variables (project_id);

-- Who changed what of a variable and when; no values.
CREATE TABLE variable_versions (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  app_id TEXT REFERENCES apps (id) ON DELETE CASCADE,
  key TEXT NOT NULL,
  version INTEGER NOT NULL,
  action TEXT NOT NULL CHECK (action IN ('created', 'changed', 'deleted')),
  -- JSON list of the fields that changed.
  fields TEXT NOT NULL,
  actor_id TEXT,
  actor_name TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX variable_versions_app ON variable_versions (app_id, key) WHERE app_id IS NOT NULL;
CREATE INDEX variable_versions_shared ON variable_versions (project_id, key) WHERE app_id IS NULL;

CREATE TRIGGER variables_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE variables SET project_id = NEW.project_id WHERE app_id = NEW.id;
  UPDATE variable_versions SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;

-- Sealed JSON of the variables that the environment was made of, to tell what has changed since and what is secret.
ALTER TABLE releases ADD COLUMN variables TEXT;
