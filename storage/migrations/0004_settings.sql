-- What an administrator set, one row per section; a section without a row has its defaults.
CREATE TABLE settings (
  section TEXT PRIMARY KEY CHECK (section IN ('server', 'domain', 'dns_provider', 'acme', 'dns', 'smtp')),
  -- The section as answers show it: secrets are masked in it.
  value TEXT NOT NULL,
  -- The masked values by their dotted path, sealed; NULL when there are none.
  secrets TEXT,
  updated_at TEXT NOT NULL
) STRICT, WITHOUT ROWID;
