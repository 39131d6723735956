-- What lists of jobs are found, ordered and counted by, without reading what each job has found out.
CREATE INDEX jobs_listed ON jobs (project_id, kind, status);
-- What of them is forgotten by its time. Those of deployments go with these.
DROP INDEX jobs_finished;
CREATE INDEX jobs_forgotten ON jobs (finished_at) WHERE finished_at IS NOT NULL AND kind <> 'deploy';
CREATE INDEX deployments_job ON deployments (job_id) WHERE job_id IS NOT NULL;
CREATE TRIGGER deployments_forget_job AFTER DELETE ON deployments WHEN OLD.job_id IS NOT NULL BEGIN
  DELETE FROM jobs WHERE id = OLD.job_id AND status IN ('succeeded', 'failed', 'cancelled');
END;
-- The newest runs of a job, in the order in which they were made: a job of every second has thousands in an hour.
CREATE INDEX cron_runs_newest ON cron_runs (cron_job_id);
-- Deployments of an app that moves are counted together: each by itself took half of the time of the move.
DROP TRIGGER deployments_count_move;
DROP TRIGGER apps_count_move;
CREATE TRIGGER apps_count_move AFTER UPDATE OF project_id ON apps WHEN OLD.project_id <> NEW.project_id BEGIN
  UPDATE row_counts SET n = n - 1 WHERE scope = 'apps:' || OLD.project_id;
  INSERT INTO row_counts VALUES ('apps:' || NEW.project_id, 1) ON CONFLICT (scope) DO UPDATE SET n = n + 1;
  UPDATE row_counts SET n = n - (SELECT count(*) FROM deployments WHERE app_id = NEW.id)
    WHERE scope = 'deployments:' || OLD.project_id;
  INSERT INTO row_counts SELECT 'deployments:' || NEW.project_id, count(*) FROM deployments WHERE app_id = NEW.id
    ON CONFLICT (scope) DO UPDATE SET n = n + excluded.n;
  UPDATE deployments SET project_id = NEW.project_id WHERE app_id = NEW.id;
END;
-- What the trail is searched by, without the lines themselves.
CREATE INDEX audit_log_listed ON audit_log (project_id, resource_type, action, actor_id, actor_email, created_at);
