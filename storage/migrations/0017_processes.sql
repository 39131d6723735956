-- JSON: command, replicas, limits and grace of processes beside the one that takes requests.
ALTER TABLE apps ADD COLUMN processes TEXT NOT NULL DEFAULT '{}';
