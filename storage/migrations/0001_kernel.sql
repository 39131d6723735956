-- Facts about the installation itself.
CREATE TABLE meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

-- Row counts kept by triggers, so that the total of a list costs the same at any size.
CREATE TABLE row_counts (
  scope TEXT PRIMARY KEY,
  n INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  type TEXT NOT NULL,
  project_id TEXT,
  app_id TEXT,
  deployment_id TEXT,
  actor_id TEXT,
  payload TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX events_app ON events (app_id, seq) WHERE app_id IS NOT NULL;
CREATE INDEX events_deployment ON events (deployment_id, seq) WHERE deployment_id IS NOT NULL;
CREATE INDEX events_project ON events (project_id, seq) WHERE project_id IS NOT NULL;
CREATE INDEX events_created ON events (created_at);

CREATE TABLE jobs (
  id TEXT PRIMARY KEY,
  kind TEXT NOT NULL,
  lane TEXT NOT NULL,
  subject TEXT NOT NULL,
  project_id TEXT,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'undoing', 'succeeded', 'failed', 'cancelled')),
  payload TEXT NOT NULL,
  state TEXT NOT NULL,
  failure TEXT,
  cancel_requested INTEGER NOT NULL DEFAULT 0,
  resumes INTEGER NOT NULL DEFAULT 0,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT
) STRICT;
CREATE INDEX jobs_open ON jobs (status) WHERE status IN ('queued', 'running', 'undoing');
CREATE INDEX jobs_lane ON jobs (lane) WHERE status IN ('queued', 'running', 'undoing');
CREATE INDEX jobs_subject ON jobs (subject);
CREATE INDEX jobs_finished ON jobs (finished_at) WHERE finished_at IS NOT NULL;

CREATE TABLE job_steps (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  position INTEGER NOT NULL,
  name TEXT NOT NULL,
  status TEXT NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  started_at TEXT,
  duration_ms INTEGER,
  failure TEXT,
  PRIMARY KEY (job_id, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE idempotency (
  scope TEXT NOT NULL,
  key TEXT NOT NULL,
  body_hash TEXT NOT NULL,
  status INTEGER,
  answer TEXT,
  created_at TEXT NOT NULL,
  PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_created ON idempotency (created_at);
