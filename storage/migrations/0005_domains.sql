CREATE TABLE domains (
  id TEXT PRIMARY KEY,
  app_id TEXT NOT NULL REFERENCES apps (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  -- ASCII in lower case; a wildcard as `*.` in front.
  hostname TEXT NOT NULL,
  -- The name with or without `www` that is sent to the other one; null while `www` is `keep`.
  counterpart TEXT,
  kind TEXT NOT NULL CHECK (kind IN ('automatic', 'custom', 'wildcard')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'verified', 'active', 'failed')),
  path TEXT NOT NULL DEFAULT '/',
  strip_path INTEGER NOT NULL DEFAULT 0,
  port INTEGER,
  ssl_mode TEXT NOT NULL CHECK (ssl_mode IN ('off', 'acme', 'custom', 'self_signed', 'external')),
  force_https INTEGER NOT NULL DEFAULT 0,
  www TEXT NOT NULL DEFAULT 'keep' CHECK (www IN ('keep', 'to_www', 'to_apex')),
  maintenance INTEGER NOT NULL DEFAULT 0,
  -- JSON: response headers, HSTS, allowed addresses, error pages.
  headers TEXT NOT NULL DEFAULT '{}',
  hsts TEXT,
  ip_allow TEXT NOT NULL DEFAULT '[]',
  error_pages TEXT NOT NULL DEFAULT '{}',
  -- JSON of user name, salt and digest: the password is not kept.
  basic_auth TEXT,
  body_limit_bytes INTEGER,
  request_timeout_seconds INTEGER,
  -- What the owner puts into a TXT record.
  token TEXT NOT NULL,
  -- JSON of what DNS said the last time.
  finding TEXT,
  checks INTEGER NOT NULL DEFAULT 0,
  checked_at TEXT,
  next_check_at TEXT,
  verified_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
-- A failed domain claims nothing: its name is free for whoever can prove it.
CREATE UNIQUE INDEX domains_place ON domains (hostname, path) WHERE status <> 'failed';
CREATE INDEX domains_counterpart ON domains (counterpart) WHERE counterpart IS NOT NULL;
CREATE INDEX domains_app ON domains (app_id);
CREATE INDEX domains_project ON domains (project_id);
CREATE INDEX domains_due ON domains (next_check_at) WHERE next_check_at IS NOT NULL;

-- Names that were removed: until then only the project that had them may take them again.
CREATE TABLE domain_cooldowns (
  hostname TEXT PRIMARY KEY,
  project_id TEXT NOT NULL,
  until TEXT NOT NULL
) STRICT;

CREATE TABLE redirects (
  id TEXT PRIMARY KEY,
  domain_id TEXT NOT NULL REFERENCES domains (id) ON DELETE CASCADE,
  app_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('exact', 'prefix', 'regex')),
  source TEXT NOT NULL,
  target TEXT NOT NULL,
  status INTEGER NOT NULL CHECK (status IN (301, 302, 307, 308)),
  keep_query INTEGER NOT NULL DEFAULT 1,
  priority INTEGER NOT NULL DEFAULT 100,
  enabled INTEGER NOT NULL DEFAULT 1,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX redirects_domain ON redirects (domain_id);
CREATE INDEX redirects_app ON redirects (app_id);
CREATE INDEX redirects_project ON redirects (project_id);

CREATE TRIGGER domains_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE domains SET project_id = NEW.project_id WHERE app_id = NEW.id;
  UPDATE redirects SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;
