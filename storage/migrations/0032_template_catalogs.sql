-- Templates that administrators added, beside those of the release.
CREATE TABLE template_catalogs (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  -- Where it is fetched; null for an upload.
  url TEXT,
  -- SHA-256 of what was taken first, or accepted since.
  digest TEXT NOT NULL,
  templates INTEGER NOT NULL,
  checked_at TEXT NOT NULL,
  created_at TEXT NOT NULL
) STRICT;
-- Apart from the facts, so that lists of catalogues do not read megabytes.
CREATE TABLE template_catalog_contents (
  catalog_id TEXT PRIMARY KEY REFERENCES template_catalogs (id) ON DELETE CASCADE,
  -- JSON: templates as they are kept.
  content TEXT NOT NULL
) STRICT;
