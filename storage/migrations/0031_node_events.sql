CREATE INDEX events_node ON events (payload ->> 'node_id', seq) WHERE payload ->> 'node_id' IS NOT NULL;
