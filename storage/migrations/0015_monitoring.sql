CREATE TABLE metric_subjects (
  number INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('server', 'app', 'database')),
  subject TEXT NOT NULL,
  UNIQUE (kind, subject)
) STRICT;

-- One row per subject and interval of 10, 60 or 3600 seconds. Numbers that a subject does not have are null.
CREATE TABLE metrics (
  subject INTEGER NOT NULL REFERENCES metric_subjects (number) ON DELETE CASCADE,
  step_s INTEGER NOT NULL,
  -- Start of the interval, in seconds since 1970.
  at INTEGER NOT NULL,
  -- How many samples of ten seconds are in it.
  samples INTEGER NOT NULL,
  -- Sums over the samples, so that intervals can be added up; peaks beside them. In thousandths of a core.
  cpu INTEGER,
  cpu_peak INTEGER,
  memory INTEGER,
  memory_peak INTEGER,
  net_in INTEGER,
  net_out INTEGER,
  instances INTEGER,
  disk_used INTEGER,
  disk_total INTEGER,
  memory_total INTEGER,
  -- Load of one minute, in hundredths.
  load INTEGER,
  requests INTEGER,
  status_2xx INTEGER,
  status_3xx INTEGER,
  status_4xx INTEGER,
  status_5xx INTEGER,
  bytes_in INTEGER,
  bytes_out INTEGER,
  -- Counts by class of latency, as text `class:count` with commas.
  latency TEXT,
  PRIMARY KEY (subject, step_s, at)
) STRICT, WITHOUT ROWID;
CREATE INDEX metrics_age ON metrics (step_s, at);

CREATE TABLE alert_rules (
  id TEXT PRIMARY KEY,
  -- Null for rules of the installation.
  project_id TEXT REFERENCES projects (id),
  -- Name of a built-in rule, null for one that a user made.
  builtin TEXT UNIQUE,
  name TEXT NOT NULL,
  subject_kind TEXT NOT NULL CHECK (subject_kind IN ('server', 'app', 'database')),
  -- One subject; null for all of its kind that the rule may see.
  subject_id TEXT,
  metric TEXT,
  comparison TEXT CHECK (comparison IN ('above', 'below')),
  threshold REAL,
  for_s INTEGER NOT NULL DEFAULT 0,
  severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'critical')),
  -- JSON: ids of the webhooks that are told; empty for all that ask for alerts.
  channels TEXT NOT NULL DEFAULT '[]',
  enabled INTEGER NOT NULL DEFAULT 1,
  silenced_until TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX alert_rules_project ON alert_rules (project_id);

-- How each subject of a rule fares; no row means that all is well.
CREATE TABLE alert_states (
  rule_id TEXT NOT NULL REFERENCES alert_rules (id) ON DELETE CASCADE,
  subject_id TEXT NOT NULL,
  project_id TEXT,
  state TEXT NOT NULL CHECK (state IN ('pending', 'firing', 'resolved')),
  -- Since when the state holds, and since when the condition has been well again.
  since TEXT NOT NULL,
  well_since TEXT,
  value REAL,
  message TEXT NOT NULL,
  -- How often it fired within the last hours: what flaps is resolved later.
  fired INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (rule_id, subject_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE alert_history (
  id TEXT PRIMARY KEY,
  rule_id TEXT NOT NULL,
  rule_name TEXT NOT NULL,
  project_id TEXT,
  subject_id TEXT NOT NULL,
  severity TEXT NOT NULL,
  message TEXT NOT NULL,
  value REAL,
  fired_at TEXT NOT NULL,
  resolved_at TEXT
) STRICT;
CREATE INDEX alert_history_open ON alert_history (rule_id, subject_id) WHERE resolved_at IS NULL;
CREATE INDEX alert_history_project ON alert_history (project_id);
CREATE INDEX alert_history_age ON alert_history (fired_at);

CREATE TABLE uptime_checks (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  app_id TEXT REFERENCES apps (id) ON DELETE SET NULL,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('http', 'tcp', 'tls')),
  target TEXT NOT NULL,
  interval_s INTEGER NOT NULL,
  timeout_s INTEGER NOT NULL,
  expected_status INTEGER,
  expected_text TEXT,
  -- For TLS: days before the end of the certificate from which on the check fails.
  days_left INTEGER,
  -- Failures in a row after which it is down.
  failures_needed INTEGER NOT NULL,
  enabled INTEGER NOT NULL DEFAULT 1,
  public INTEGER NOT NULL DEFAULT 0,
  status TEXT NOT NULL CHECK (status IN ('unknown', 'up', 'down')),
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  last_latency_ms INTEGER,
  checked_at TEXT,
  changed_at TEXT,
  next_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX uptime_checks_project ON uptime_checks (project_id);
CREATE INDEX uptime_checks_due ON uptime_checks (next_at) WHERE enabled = 1;

-- Results added up per interval of 300 or 86400 seconds.
CREATE TABLE uptime_results (
  check_id TEXT NOT NULL REFERENCES uptime_checks (id) ON DELETE CASCADE,
  step_s INTEGER NOT NULL,
  at INTEGER NOT NULL,
  checks INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  latency_sum_ms INTEGER NOT NULL,
  latency_peak_ms INTEGER NOT NULL,
  last_error TEXT,
  PRIMARY KEY (check_id, step_s, at)
) STRICT, WITHOUT ROWID;

CREATE TABLE status_pages (
  project_id TEXT PRIMARY KEY REFERENCES projects (id) ON DELETE CASCADE,
  slug TEXT NOT NULL UNIQUE
) STRICT, WITHOUT ROWID;
