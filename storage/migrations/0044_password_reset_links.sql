-- Links that set a new password are several of one user: whoever asks for one takes none away that is on its way.
CREATE TABLE password_reset_links (
  token_hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT;
INSERT INTO password_reset_links (token_hash, user_id, created_at, expires_at)
  SELECT token_hash, user_id, created_at, expires_at FROM password_resets;
DROP TABLE password_resets;
ALTER TABLE password_reset_links RENAME TO password_resets;
CREATE INDEX password_resets_user ON password_resets (user_id);
