CREATE INDEX events_user ON events (payload ->> 'user_id', seq) WHERE payload ->> 'user_id' IS NOT NULL;
