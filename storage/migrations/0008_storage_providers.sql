-- Where backups are kept. Secrets of the configuration are one sealed JSON, apart from what may be shown.
CREATE TABLE storage_providers (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  config TEXT NOT NULL,
  secrets TEXT,
  -- Sealed: what archives are encrypted with, so that they open without the key of this installation.
  passphrase TEXT,
  is_default INTEGER NOT NULL DEFAULT 0,
  checked_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX storage_providers_default ON storage_providers (is_default) WHERE is_default = 1;
