CREATE TABLE users (
  id TEXT PRIMARY KEY,
  -- Lower case.
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
  status TEXT NOT NULL DEFAULT 'active' CHECK (status IN ('active', 'disabled')),
  password_hash TEXT NOT NULL,
  -- 1 while the generated first password is still in use.
  password_stale INTEGER NOT NULL DEFAULT 0,
  -- Sealed seed in use; null while two-factor authentication is off.
  totp_seed TEXT,
  -- Sealed seed that waits for its first code.
  totp_pending TEXT,
  -- The last time step that was used up; none at or before it is accepted again.
  totp_step INTEGER NOT NULL DEFAULT 0,
  preferences TEXT NOT NULL DEFAULT '{}',
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  last_login_at TEXT
) STRICT;

CREATE TABLE recovery_codes (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  code_hash TEXT NOT NULL,
  PRIMARY KEY (user_id, code_hash)
) STRICT, WITHOUT ROWID;

-- One login on one device: carries a bearer token and a cookie.
CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  cookie_hash TEXT NOT NULL UNIQUE,
  -- Counts refreshes; only tokens of this version are valid, and for a short grace those of the one before.
  token_version INTEGER NOT NULL DEFAULT 1,
  refreshed_at TEXT,
  address TEXT NOT NULL,
  user_agent TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_used_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT;
CREATE INDEX sessions_user ON sessions (user_id);
CREATE INDEX sessions_expiry ON sessions (expires_at);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  scope TEXT NOT NULL CHECK (scope IN ('full', 'read', 'deploy')),
  -- JSON lists; null means no limit.
  project_ids TEXT,
  addresses TEXT,
  expires_at TEXT,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  last_used_address TEXT
) STRICT;
CREATE INDEX api_keys_user ON api_keys (user_id);

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  description TEXT NOT NULL DEFAULT '',
  is_default INTEGER NOT NULL DEFAULT 0,
  -- JSON object of upper limits; a missing one does not limit.
  quotas TEXT NOT NULL DEFAULT '{}',
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX projects_default ON projects (is_default) WHERE is_default = 1;

CREATE TABLE project_members (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('owner', 'developer', 'viewer')),
  created_at TEXT NOT NULL,
  PRIMARY KEY (project_id, user_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX project_members_user ON project_members (user_id);

CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  role TEXT NOT NULL CHECK (role IN ('admin', 'member', 'viewer')),
  -- JSON list of { project_id, role }.
  projects TEXT NOT NULL DEFAULT '[]',
  token_hash TEXT NOT NULL UNIQUE,
  invited_by TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT;

CREATE TABLE audit_log (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  created_at TEXT NOT NULL,
  actor_id TEXT,
  actor_email TEXT,
  method TEXT NOT NULL,
  credential_id TEXT,
  action TEXT NOT NULL,
  resource_type TEXT NOT NULL,
  resource_id TEXT,
  project_id TEXT,
  before TEXT,
  after TEXT,
  address TEXT,
  request_id TEXT
) STRICT;
CREATE INDEX audit_log_created ON audit_log (created_at);
CREATE INDEX audit_log_project ON audit_log (project_id, seq) WHERE project_id IS NOT NULL;
CREATE INDEX audit_log_actor ON audit_log (actor_id, seq);
CREATE INDEX audit_log_action ON audit_log (action, seq);
CREATE INDEX audit_log_resource ON audit_log (resource_id, seq) WHERE resource_id IS NOT NULL;

-- The trail is append-only for everyone, the platform included.
CREATE TRIGGER audit_log_no_update BEFORE UPDATE ON audit_log BEGIN
  SELECT RAISE(ABORT, 'The audit log cannot be changed.');
END;
-- Only lines that are older than the retention may go; the cut is a row of `meta` for as long as that transaction lasts.
CREATE TRIGGER audit_log_no_delete BEFORE DELETE ON audit_log
WHEN OLD.created_at >= coalesce((SELECT value FROM meta WHERE key = 'audit_log.prune_before'), '') BEGIN
  SELECT RAISE(ABORT, 'The audit log cannot be changed.');
END;
-- REPLACE would delete without asking the trigger above.
CREATE TRIGGER audit_log_no_replace BEFORE INSERT ON audit_log
WHEN EXISTS (SELECT 1 FROM audit_log WHERE id = NEW.id OR seq = NEW.seq) BEGIN
  SELECT RAISE(ABORT, 'The audit log cannot be changed.');
END;
CREATE TRIGGER audit_log_count_insert AFTER INSERT ON audit_log BEGIN
  INSERT INTO row_counts VALUES ('audit_log', 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
  INSERT INTO row_counts SELECT 'audit_log:' || NEW.project_id, 1 WHERE NEW.project_id IS NOT NULL ON CONFLICT (scope) DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER audit_log_count_delete AFTER DELETE ON audit_log BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope IN ('audit_log', 'audit_log:' || OLD.project_id);
END;

CREATE TABLE ssh_keys (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  type TEXT NOT NULL,
  public_key TEXT NOT NULL,
  -- `SHA256:…` of the public half.
  fingerprint TEXT NOT NULL,
  -- Sealed; null for a key of which only the public half was added.
  private_key TEXT,
  -- Host that the key is offered to as a deploy key; null offers it to none.
  host TEXT,
  -- Lines of known_hosts that pin the host's own key.
  known_hosts TEXT,
  created_by TEXT,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (project_id, fingerprint)
) STRICT;

CREATE TABLE git_credentials (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  host TEXT NOT NULL,
  username TEXT,
  token TEXT NOT NULL,
  -- Last four characters, to tell tokens apart.
  hint TEXT NOT NULL,
  created_by TEXT,
  created_at TEXT NOT NULL,
  last_used_at TEXT,
  UNIQUE (project_id, host)
) STRICT;

CREATE TABLE registries (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  -- Host with its port, as image references begin with it; `docker.io` for the default one.
  host TEXT NOT NULL UNIQUE,
  username TEXT NOT NULL,
  password TEXT NOT NULL,
  verified_at TEXT NOT NULL,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
