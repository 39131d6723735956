-- A forge allows a deploy key, and many a token, on one repository only: an app may name its own, and a project may
-- have several tokens for one host.
CREATE TABLE new_git_credentials (
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
  last_used_at TEXT
) STRICT;
INSERT INTO new_git_credentials
  SELECT id, project_id, name, host, username, token, hint, created_by, created_at, last_used_at
  FROM git_credentials ORDER BY rowid;
DROP TABLE git_credentials;
ALTER TABLE new_git_credentials RENAME TO git_credentials;
CREATE INDEX git_credentials_host ON git_credentials (project_id, host);

ALTER TABLE apps ADD COLUMN ssh_key_id TEXT REFERENCES ssh_keys (id);
ALTER TABLE apps ADD COLUMN git_credential_id TEXT REFERENCES git_credentials (id);
CREATE INDEX apps_ssh_key ON apps (ssh_key_id) WHERE ssh_key_id IS NOT NULL;
CREATE INDEX apps_git_credential ON apps (git_credential_id) WHERE git_credential_id IS NOT NULL;
