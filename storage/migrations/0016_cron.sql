CREATE TABLE cron_jobs (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  expression TEXT NOT NULL,
  timezone TEXT NOT NULL,
  -- JSON: a line of shell or a list of arguments; null for an HTTP call.
  command TEXT,
  url TEXT,
  method TEXT,
  -- Sealed JSON of headers and body; null without any.
  request TEXT,
  timeout_s INTEGER NOT NULL,
  overlap TEXT NOT NULL CHECK (overlap IN ('forbid', 'allow', 'replace')),
  catch_up TEXT NOT NULL CHECK (catch_up IN ('none', 'once')),
  retries INTEGER NOT NULL,
  retry_delay_s INTEGER NOT NULL,
  enabled INTEGER NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('api', 'repository')),
  next_run_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX cron_jobs_app ON cron_jobs (app_id);
CREATE INDEX cron_jobs_project ON cron_jobs (project_id);
CREATE INDEX cron_jobs_due ON cron_jobs (next_run_at) WHERE enabled = 1;

CREATE TABLE cron_runs (
  id TEXT PRIMARY KEY,
  cron_job_id TEXT NOT NULL REFERENCES cron_jobs (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  -- The time that it was due; null for a run by hand.
  slot TEXT,
  trigger TEXT NOT NULL CHECK (trigger IN ('schedule', 'catch_up', 'manual')),
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed', 'timed_out', 'cancelled', 'skipped', 'missed')),
  attempts INTEGER NOT NULL DEFAULT 0,
  exit_code INTEGER,
  http_status INTEGER,
  error TEXT,
  output TEXT NOT NULL DEFAULT '',
  truncated INTEGER NOT NULL DEFAULT 0,
  job_id TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  started_at TEXT,
  finished_at TEXT,
  duration_ms INTEGER
) STRICT;
-- Whatever the clock of the server does, a slot runs once.
CREATE UNIQUE INDEX cron_runs_slot ON cron_runs (cron_job_id, slot) WHERE slot IS NOT NULL;
CREATE INDEX cron_runs_job ON cron_runs (cron_job_id, created_at);
CREATE INDEX cron_runs_open ON cron_runs (cron_job_id) WHERE status IN ('queued', 'running');

CREATE TRIGGER cron_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE cron_jobs SET project_id = NEW.project_id WHERE app_id = NEW.id;
  UPDATE cron_runs SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;
