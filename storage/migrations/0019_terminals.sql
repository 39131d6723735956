-- Terminals that are open. A row that is here when the process starts belongs to one that was cut off.
CREATE TABLE terminals (
  id TEXT PRIMARY KEY,
  noun TEXT NOT NULL,
  resource_id TEXT NOT NULL,
  project_id TEXT NOT NULL,
  instance_id TEXT NOT NULL,
  user_id TEXT NOT NULL,
  started_at TEXT NOT NULL
) STRICT;
