-- What a deleted project or app is looked up by in the rows that hang on it: without these each deletion read whole tables.
DROP INDEX variable_versions_shared;
CREATE INDEX variable_versions_project ON variable_versions (project_id, app_id, key);
CREATE INDEX uptime_checks_app ON uptime_checks (app_id) WHERE app_id IS NOT NULL;
CREATE INDEX release_scales_app ON release_scales (app_id);
-- Who hears of an event: the few that listen to all projects, and those of its own.
DROP INDEX webhooks_told;
CREATE INDEX webhooks_of_all ON webhooks (all_projects) WHERE all_projects = 1;
