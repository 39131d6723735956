-- Servers beside the one of Portreeve. Of its own server `address` is null, and so is how it is logged in to.
ALTER TABLE nodes ADD COLUMN address TEXT;
ALTER TABLE nodes ADD COLUMN ssh_port INTEGER;
ALTER TABLE nodes ADD COLUMN ssh_user TEXT;
ALTER TABLE nodes ADD COLUMN ssh_key_id TEXT;
-- The fingerprint of the server's key that an administrator approved.
ALTER TABLE nodes ADD COLUMN host_key TEXT;
-- active or drain.
ALTER TABLE nodes ADD COLUMN availability TEXT NOT NULL DEFAULT 'active';
-- Why it could not be joined, drained or removed.
ALTER TABLE nodes ADD COLUMN last_error TEXT;
-- What it had and used when it last answered; JSON.
ALTER TABLE nodes ADD COLUMN reading TEXT;
-- Since when it does not answer; null while it does.
ALTER TABLE nodes ADD COLUMN silent_since TEXT;
-- When it was made a part of the cluster: from then on it has to leave before it is forgotten.
ALTER TABLE nodes ADD COLUMN joined_at TEXT;
CREATE UNIQUE INDEX nodes_address ON nodes (address) WHERE address IS NOT NULL;
-- The server that all instances of a release are on; null for that of Portreeve itself.
ALTER TABLE releases ADD COLUMN node_id TEXT;
CREATE INDEX releases_node ON releases (node_id) WHERE node_id IS NOT NULL;
