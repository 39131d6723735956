-- How many instances an app has beyond what a deployment said, and whether it sleeps.
CREATE TABLE app_scaling (
  app_id TEXT PRIMARY KEY REFERENCES apps (id) ON DELETE CASCADE,
  state TEXT NOT NULL DEFAULT 'awake' CHECK (state IN ('awake', 'asleep', 'waking')),
  state_since TEXT,
  sleep_after_s INTEGER,
  -- JSON: cores and memory kept for each instance.
  reservations TEXT NOT NULL DEFAULT '{}',
  -- JSON: metric, target, least and most instances, cool-downs.
  rule TEXT,
  -- Instances that the rule decided on.
  decided INTEGER,
  up_at TEXT,
  down_at TEXT,
  -- JSON: what the last step up was decided on.
  up_basis TEXT
) STRICT;

-- What was changed of a release without a deployment; a release that is made later has it from the app.
CREATE TABLE release_scales (
  release_id TEXT PRIMARY KEY REFERENCES releases (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  replicas INTEGER,
  limits TEXT NOT NULL DEFAULT '{}',
  processes TEXT NOT NULL DEFAULT '{}'
) STRICT;

CREATE TABLE scaling_decisions (
  id INTEGER PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  at TEXT NOT NULL,
  reason TEXT NOT NULL,
  metric TEXT,
  value REAL,
  target REAL,
  from_replicas INTEGER NOT NULL,
  to_replicas INTEGER NOT NULL,
  outcome TEXT NOT NULL,
  detail TEXT
) STRICT;
CREATE INDEX scaling_decisions_of_app ON scaling_decisions (app_id, id);
