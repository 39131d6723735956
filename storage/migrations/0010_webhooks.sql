CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  app_id TEXT REFERENCES apps (id) ON DELETE CASCADE,
  kind TEXT NOT NULL CHECK (kind IN ('git', 'deployment', 'notification')),
  -- Forge of a git hook, receiver of a notification.
  provider TEXT,
  name TEXT NOT NULL,
  all_projects INTEGER NOT NULL DEFAULT 0,
  enabled INTEGER NOT NULL DEFAULT 1,
  -- JSON: types of events and patterns such as `deployment.*`.
  events TEXT NOT NULL DEFAULT '[]',
  -- Where messages go, without a secret.
  target TEXT,
  -- Sealed JSON of the receiver's configuration.
  config TEXT,
  -- Digest of the secret part of the address, by which a request finds its hook.
  token_digest TEXT UNIQUE,
  -- Sealed: the secret part of the address, and the key of signatures.
  token TEXT,
  secret TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX webhooks_project ON webhooks (project_id);
CREATE INDEX webhooks_app ON webhooks (app_id) WHERE app_id IS NOT NULL;
CREATE INDEX webhooks_told ON webhooks (kind, enabled);

CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  direction TEXT NOT NULL CHECK (direction IN ('in', 'out')),
  event TEXT NOT NULL,
  -- The forge's id of the delivery, or the position of our event: what makes a repeat known.
  repeat_key TEXT,
  -- JSON of what was told.
  content TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('pending', 'succeeded', 'failed', 'ignored')),
  attempts INTEGER NOT NULL DEFAULT 0,
  response_status INTEGER,
  detail TEXT,
  duration_ms INTEGER,
  -- JSON: deployments that it started.
  deployment_ids TEXT NOT NULL DEFAULT '[]',
  next_attempt_at TEXT,
  created_at TEXT NOT NULL,
  finished_at TEXT
) STRICT;
CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook_id);
CREATE UNIQUE INDEX webhook_deliveries_repeat ON webhook_deliveries (webhook_id, repeat_key)
  WHERE repeat_key IS NOT NULL;
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (next_attempt_at) WHERE status = 'pending';
CREATE INDEX webhook_deliveries_age ON webhook_deliveries (created_at);

-- Position of the last event that became deliveries.
CREATE TABLE webhook_position (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  seq INTEGER NOT NULL
) STRICT;
