CREATE TABLE backup_schedules (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  target TEXT NOT NULL CHECK (target IN ('database', 'volume', 'app', 'platform')),
  target_id TEXT,
  -- «platform» for backups of the installation itself, which belong to no project.
  project_id TEXT NOT NULL,
  cron TEXT NOT NULL,
  timezone TEXT NOT NULL,
  retention TEXT NOT NULL,
  destination_id TEXT REFERENCES storage_providers (id),
  encrypted INTEGER NOT NULL,
  pause_app INTEGER NOT NULL DEFAULT 0,
  enabled INTEGER NOT NULL DEFAULT 1,
  next_run_at TEXT,
  last_run_at TEXT,
  last_missed_at TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX backup_schedules_due ON backup_schedules (next_run_at) WHERE enabled = 1;
CREATE INDEX backup_schedules_project ON backup_schedules (project_id);
CREATE INDEX backup_schedules_destination ON backup_schedules (destination_id);

CREATE TABLE backups (
  id TEXT PRIMARY KEY,
  target TEXT NOT NULL CHECK (target IN ('database', 'volume', 'app', 'platform')),
  -- Kept after what it names is gone: backups outlive their target.
  target_id TEXT,
  target_name TEXT NOT NULL,
  project_id TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'succeeded', 'failed')),
  trigger TEXT NOT NULL CHECK (trigger IN ('manual', 'schedule', 'final', 'upload')),
  schedule_id TEXT REFERENCES backup_schedules (id) ON DELETE SET NULL,
  destination_id TEXT NOT NULL REFERENCES storage_providers (id),
  object_key TEXT NOT NULL,
  size_bytes INTEGER,
  original_bytes INTEGER,
  sha256 TEXT,
  encrypted INTEGER NOT NULL,
  -- Sealed: the key of this archive alone.
  data_key TEXT,
  pause_app INTEGER NOT NULL DEFAULT 0,
  engine TEXT,
  version TEXT,
  error TEXT,
  duration_ms INTEGER,
  verification TEXT,
  verified_at TEXT,
  expires_at TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  finished_at TEXT
) STRICT;
CREATE INDEX backups_project ON backups (project_id);
CREATE INDEX backups_target ON backups (target_id, status);
CREATE INDEX backups_schedule ON backups (schedule_id, status) WHERE schedule_id IS NOT NULL;
CREATE INDEX backups_destination ON backups (destination_id);
