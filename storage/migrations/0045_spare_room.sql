-- Fills the file of the database for a moment, so that pages are left in it which the disk need not give any more.
CREATE TABLE spare_room (
  filler BLOB NOT NULL
) STRICT;
