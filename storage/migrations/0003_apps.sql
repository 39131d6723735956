CREATE TABLE apps (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  status TEXT NOT NULL CHECK (status IN ('building', 'running', 'stopped', 'failed', 'crashed', 'deleting')),
  source TEXT NOT NULL CHECK (source IN ('git', 'image', 'dockerfile', 'compose', 'upload', 'template')),
  git_url TEXT,
  branch TEXT,
  image TEXT,
  dockerfile TEXT,
  base_directory TEXT NOT NULL DEFAULT '.',
  build TEXT NOT NULL DEFAULT '{}',
  port INTEGER,
  health_check TEXT NOT NULL DEFAULT '{}',
  replicas INTEGER NOT NULL DEFAULT 1,
  limits TEXT NOT NULL DEFAULT '{}',
  auto_deploy INTEGER NOT NULL DEFAULT 1,
  watch_paths TEXT NOT NULL DEFAULT '[]',
  soak_seconds INTEGER NOT NULL DEFAULT 10,
  node_id TEXT,
  live_deployment_id TEXT,
  live_release_id TEXT,
  next_number INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX apps_project ON apps (project_id);
CREATE INDEX apps_status ON apps (status);

CREATE TABLE deployments (
  id TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  number INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'building', 'releasing', 'live', 'failed', 'cancelled', 'superseded')),
  trigger TEXT NOT NULL,
  -- What was asked for: branch, commit, no_cache, release to take over, uploaded archive.
  request TEXT NOT NULL DEFAULT '{}',
  -- What detection decided; null until then and for images.
  plan TEXT,
  branch TEXT,
  commit_sha TEXT,
  commit_message TEXT,
  commit_author TEXT,
  image TEXT,
  release_id TEXT,
  failure TEXT,
  job_id TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  live_at TEXT,
  finished_at TEXT
) STRICT;
CREATE UNIQUE INDEX deployments_app ON deployments (app_id, number);
CREATE INDEX deployments_project ON deployments (project_id);
CREATE INDEX deployments_open ON deployments (app_id, status) WHERE status IN ('queued', 'building', 'releasing');
CREATE INDEX deployments_status ON deployments (status);

-- Immutable: image, configuration, environment and command of one deployment that was once live or is becoming so.
CREATE TABLE releases (
  id TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  deployment_id TEXT NOT NULL REFERENCES deployments (id) ON DELETE CASCADE,
  image_id TEXT NOT NULL,
  image_tag TEXT,
  image_present INTEGER NOT NULL DEFAULT 1,
  commit_sha TEXT,
  -- Hash of commit and build configuration: an equal one needs no build.
  build_key TEXT,
  -- Command, port, health check, limits, release command, as used.
  settings TEXT NOT NULL,
  -- Sealed JSON of the environment.
  environment TEXT NOT NULL,
  -- The app's configuration at that time, to tell what has changed since.
  configuration TEXT NOT NULL,
  proven INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX releases_app ON releases (app_id);
CREATE INDEX releases_build ON releases (app_id, build_key) WHERE build_key IS NOT NULL;
CREATE INDEX releases_deployment ON releases (deployment_id);

CREATE TRIGGER apps_count_insert AFTER INSERT ON apps BEGIN
  INSERT INTO row_counts VALUES ('apps', 1), ('apps:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER apps_count_delete AFTER DELETE ON apps BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope IN ('apps', 'apps:' || OLD.project_id);
END;
CREATE TRIGGER apps_count_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope = 'apps:' || OLD.project_id;
  INSERT INTO row_counts VALUES ('apps:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
  UPDATE deployments SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;
CREATE TRIGGER deployments_count_insert AFTER INSERT ON deployments BEGIN
  INSERT INTO row_counts VALUES ('deployments', 1), ('deployments:' || NEW.project_id, 1), ('deployments:' || NEW.app_id, 1)
    ON CONFLICT (scope) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER deployments_count_delete AFTER DELETE ON deployments BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope IN ('deployments', 'deployments:' || OLD.project_id, 'deployments:' || OLD.app_id);
END;
CREATE TRIGGER deployments_count_move AFTER UPDATE OF project_id ON deployments WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope = 'deployments:' || OLD.project_id;
  INSERT INTO row_counts VALUES ('deployments:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
END;
