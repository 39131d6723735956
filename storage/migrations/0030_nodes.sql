-- Servers that run instances. Today there is one: the server of Portreeve itself.
CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  -- ready or unreachable, as of `checked_at`.
  state TEXT NOT NULL,
  -- A JSON object of texts.
  labels TEXT NOT NULL DEFAULT '{}',
  -- When the engine was last asked, and when it last answered.
  checked_at TEXT NOT NULL,
  last_seen_at TEXT,
  created_at TEXT NOT NULL,
  updated_at TEXT NOT NULL
) STRICT;
