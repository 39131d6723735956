-- Data that a restore or a trial fills beside a volume, until they take the place of its own or are removed.
CREATE TABLE volume_spares (
  data_id TEXT PRIMARY KEY,
  created_at TEXT NOT NULL
) STRICT;
