-- Set for an app or a database that belongs to a preview: it has a network of its own and shows in no list of apps.
ALTER TABLE apps ADD COLUMN preview_id TEXT;
ALTER TABLE databases ADD COLUMN preview_id TEXT;
CREATE INDEX apps_preview ON apps (preview_id) WHERE preview_id IS NOT NULL;
CREATE INDEX databases_preview ON databases (preview_id) WHERE preview_id IS NOT NULL;

-- Lists of apps leave previews out, and so do their totals.
DROP TRIGGER apps_count_insert;
DROP TRIGGER apps_count_delete;
DROP TRIGGER apps_count_move;
CREATE TRIGGER apps_count_insert AFTER INSERT ON apps WHEN NEW.preview_id IS NULL BEGIN
  INSERT INTO row_counts VALUES ('apps', 1), ('apps:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apps_count_delete AFTER DELETE ON apps WHEN OLD.preview_id IS NULL BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope IN ('apps', 'apps:' || OLD.project_id);
END;
CREATE TRIGGER apps_count_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope = 'apps:' || OLD.project_id;
  INSERT INTO row_counts VALUES ('apps:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
  UPDATE deployments SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;

CREATE TABLE preview_settings (
  app_id TEXT PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
  enabled INTEGER NOT NULL,
  max_previews INTEGER NOT NULL,
  ttl_seconds INTEGER,
  domain_pattern TEXT NOT NULL,
  forks TEXT NOT NULL CHECK (forks IN ('never', 'approval', 'without_secrets')),
  databases INTEGER NOT NULL,
  -- Sealed JSON of variables that only previews get; null without any.
  env TEXT,
  updated_at TEXT NOT NULL
) STRICT;

CREATE TABLE previews (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  -- What it is a preview of. No reference: the row stays until all that the preview holds is gone.
  app_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  name TEXT NOT NULL,
  title TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('waiting', 'building', 'running', 'stopped', 'failed', 'removing')),
  source TEXT NOT NULL CHECK (source IN ('pull_request', 'api')),
  -- The app that runs it; null until something of it is deployed.
  runner_id TEXT,
  is_fork INTEGER NOT NULL,
  git_url TEXT NOT NULL,
  branch TEXT NOT NULL,
  commit_sha TEXT,
  -- Newest commit of a fork, while nobody has approved it.
  waiting_sha TEXT,
  -- Whether what is deployed may have secrets and copies of databases.
  trusted INTEGER NOT NULL,
  -- Page of the pull request at the forge.
  web_url TEXT,
  approved_by TEXT,
  approved_at TEXT,
  last_error TEXT,
  -- What was last told of it: deployment, status of the app, outcome.
  told TEXT,
  removal_reason TEXT,
  -- What is to be made once the removal that is under way is done; JSON.
  revival TEXT,
  expires_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX previews_number ON previews (app_id, number);
CREATE INDEX previews_project ON previews (project_id);
CREATE INDEX previews_runner ON previews (runner_id);

-- Databases that a preview has for those that its app is linked to.
CREATE TABLE preview_databases (
  preview_id TEXT NOT NULL REFERENCES previews (id) ON DELETE CASCADE,
  database_id TEXT NOT NULL,
  -- Name of the database that it is a copy of.
  source_name TEXT NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (preview_id, database_id)
) STRICT;

-- The one comment on a pull request that is kept up to date.
CREATE TABLE pull_request_comments (
  app_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  comment_id TEXT NOT NULL,
  -- Of what was written last, so that nothing is written twice.
  digest TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (app_id, number)
) STRICT;
