-- Format 12: a row for each vector, and an index of words whose rows say how long a task is.

CREATE TABLE spaces_12 (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    name TEXT NOT NULL,
    dimensions INTEGER,                    -- unknown before the first vector
    epoch INTEGER NOT NULL DEFAULT 0,      -- grows when what was read before must be forgotten
    sum INTEGER NOT NULL,                  -- of scope, name and dimensions
    UNIQUE (scope, name)
) STRICT;
INSERT INTO spaces_12 SELECT number, scope, name, dimensions, epoch, sum FROM spaces;
DROP TABLE spaces;
ALTER TABLE spaces_12 RENAME TO spaces;
CREATE TABLE vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows with every vector placed
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,                  -- the experience's number * 4096, plus the place of a lesson
    vector BLOB NOT NULL,                  -- see to_blobs in _vectors.py
    sum INTEGER NOT NULL,                  -- of space, key and vector
    UNIQUE (space, key)
) STRICT;
CREATE INDEX vectors_by_space ON vectors (space);
DROP TABLE lengths;
