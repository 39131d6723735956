CREATE TABLE certificates (
  id TEXT PRIMARY KEY,
  project_id TEXT NOT NULL REFERENCES projects (id),
  -- Its first name, for lists and search.
  name TEXT NOT NULL,
  -- JSON list of lower-case DNS names.
  names TEXT NOT NULL,
  source TEXT NOT NULL CHECK (source IN ('acme', 'upload', 'csr', 'self_signed')),
  status TEXT NOT NULL CHECK (status IN ('pending', 'issuing', 'active', 'failed', 'expired', 'revoked')),
  -- Domain that it was made for without being asked for; null for one that somebody made.
  domain_id TEXT,
  key_type TEXT NOT NULL CHECK (key_type IN ('ecdsa', 'rsa')),
  challenge TEXT CHECK (challenge IN ('http-01', 'dns-01')),
  -- The chain that serves, leaf first, and what its leaf says.
  chain TEXT,
  issuer TEXT,
  serial_number TEXT,
  fingerprint TEXT,
  not_before TEXT,
  not_after TEXT,
  -- What is odd about a chain although it is taken.
  warning TEXT,
  -- Sealed key of the chain.
  private_key TEXT,
  -- Sealed key of an order or a request that is under way.
  next_key TEXT,
  -- The certificate signing request, in PEM.
  request TEXT,
  -- Account that obtained the chain: it may revoke it.
  directory_url TEXT,
  auto_renew INTEGER NOT NULL DEFAULT 1,
  renew_at TEXT,
  -- Attempts that failed since the last success.
  failures INTEGER NOT NULL DEFAULT 0,
  last_error TEXT,
  next_attempt_at TEXT,
  -- Time before which the authority does not want to be asked again.
  blocked_until TEXT,
  -- The smallest number of days before the expiry that was told.
  noticed_days INTEGER,
  created_by TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE INDEX certificates_project ON certificates (project_id);
CREATE INDEX certificates_domain ON certificates (domain_id) WHERE domain_id IS NOT NULL;

-- One account per directory of an authority.
CREATE TABLE acme_accounts (
  directory_url TEXT PRIMARY KEY,
  -- Null until the authority took it.
  account_url TEXT,
  email TEXT,
  eab_kid TEXT,
  -- Sealed.
  private_key TEXT NOT NULL,
  -- Sealed key that the authority is being told to use from now on.
  next_key TEXT,
  keyed_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;

-- What was asked of authorities lately, for staying below their limits.
CREATE TABLE acme_attempts (
  id INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('order', 'issued', 'failed_validation')),
  -- A host name; for `issued` the registrable domain; empty for `order`.
  subject TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
CREATE INDEX acme_attempts_kind ON acme_attempts (kind, subject, created_at);
