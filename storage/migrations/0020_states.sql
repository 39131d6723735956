-- Apps that are on their way up or down say so, and of an app's deployments exactly one is live: those that were are
-- replaced. SQLite changes a check only together with its column.
DROP INDEX apps_status;
ALTER TABLE apps ADD COLUMN new_status TEXT NOT NULL DEFAULT 'building' CHECK (new_status IN
  ('building', 'starting', 'running', 'stopping', 'stopped', 'failed', 'crashed', 'deleting'));
UPDATE apps SET new_status = status;
ALTER TABLE apps DROP COLUMN status;
ALTER TABLE apps RENAME COLUMN new_status TO status;
CREATE INDEX apps_status ON apps (status);

DROP INDEX deployments_open;
DROP INDEX deployments_status;
ALTER TABLE deployments ADD COLUMN new_status TEXT NOT NULL DEFAULT 'queued' CHECK (new_status IN
  ('queued', 'building', 'releasing', 'live', 'replaced', 'failed', 'cancelled', 'superseded'));
UPDATE deployments SET new_status = CASE
  WHEN status = 'live' AND NOT EXISTS (SELECT 1 FROM apps WHERE live_deployment_id = deployments.id) THEN 'replaced'
  ELSE status END;
ALTER TABLE deployments DROP COLUMN status;
ALTER TABLE deployments RENAME COLUMN new_status TO status;
CREATE INDEX deployments_open ON deployments (app_id, status) WHERE status IN ('queued', 'building', 'releasing');
CREATE INDEX deployments_status ON deployments (status);
