-- What the engine calls the data of a volume; null while they have the name of the volume itself. A restore puts
-- other data in their place and keeps the old ones until it has succeeded.
ALTER TABLE volumes ADD COLUMN data_id TEXT;
ALTER TABLE volumes ADD COLUMN previous_data_id TEXT;
-- Set while a restore makes it: nobody may use it yet.
ALTER TABLE volumes ADD COLUMN filling INTEGER NOT NULL DEFAULT 0;
