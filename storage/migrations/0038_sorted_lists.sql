-- What lists of apps and cron jobs are sorted and filtered by, in one place: their rows may have a quarter of a megabyte each, and the columns stand behind it.
CREATE INDEX apps_sorted ON apps (project_id, status, name, created_at, preview_id);
CREATE INDEX cron_jobs_sorted ON cron_jobs (project_id, name, next_run_at, created_at, app_id);
DROP INDEX apps_status;
CREATE INDEX apps_status ON apps (status, project_id, preview_id);
-- What fires in some projects.
CREATE INDEX alert_states_firing ON alert_states (state, project_id);
