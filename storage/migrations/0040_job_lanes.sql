-- Lanes that a job holds beside its own, such as those of all apps that a restored volume is mounted by.
CREATE TABLE job_lanes (
  job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
  lane TEXT NOT NULL,
  PRIMARY KEY (job_id, lane)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_lanes_lane ON job_lanes (lane);

-- Every lane that is held or waited for.
CREATE VIEW open_lanes AS
  SELECT lane, id AS job_id FROM jobs WHERE status IN ('queued', 'running', 'undoing')
  UNION ALL
  SELECT l.lane, l.job_id FROM job_lanes l JOIN jobs j ON j.id = l.job_id
    WHERE j.status IN ('queued', 'running', 'undoing');
