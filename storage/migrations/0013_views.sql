-- What other domains may read of these tables. Each table is named in the SQL of its owner alone.
CREATE VIEW people AS
  SELECT id, email, name, status = 'active' AND role <> 'viewer' AS can_act FROM users;

CREATE VIEW open_jobs AS
  SELECT id, kind, lane, subject, state, status FROM jobs WHERE status IN ('queued', 'running', 'undoing');
