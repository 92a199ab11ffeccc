-- The tables of format 11 whose records are plain JSON, beside those of format 10.

CREATE TABLE journal_11 (
    number INTEGER PRIMARY KEY,            -- scope * 2^32 + sequence: 1, 2, 3, … in each scope
    at INTEGER NOT NULL,                   -- microseconds since 1970, UTC
    kind TEXT NOT NULL,
    writer TEXT NOT NULL,
    whole TEXT,                            -- JSON list: numbers of the experiences this entry holds whole (mostly one),
    part TEXT,                             -- and of those it changes without holding them
    entry_sum INTEGER NOT NULL,
    entry TEXT NOT NULL,                   -- what happened
    sum INTEGER NOT NULL                   -- of number, at and writer
) STRICT;
CREATE TABLE experiences_11 (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    active INTEGER NOT NULL,               -- whether it has a lesson of its own that may be shown
    words INTEGER NOT NULL,
    entry INTEGER NOT NULL,                -- the last journal entry that wrote it
    id TEXT NOT NULL,
    record_sum INTEGER,
    record TEXT,                           -- null where the journal entry holds it as it is
    sum INTEGER NOT NULL,                  -- of number and entry
    UNIQUE (scope, id)
) STRICT;
CREATE TABLE trajectories_11 (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    kept_at INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    id TEXT NOT NULL,
    record_sum INTEGER NOT NULL,
    record TEXT NOT NULL,
    sum INTEGER NOT NULL,                  -- of scope, kept_at and id
    due INTEGER DEFAULT 0,                 -- no worker takes it before; null: none does (unfinished, or given up)
    worker TEXT,                           -- who took it; it is theirs until it is due again
    tries INTEGER NOT NULL DEFAULT 0,
    error TEXT,                            -- why the last try failed
    leader INTEGER,                        -- the number of the first run that was kept with it, if that is another
    UNIQUE (scope, id)
) STRICT;
CREATE TABLE recalls_11 (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    record_sum INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (scope, id)
) STRICT;
