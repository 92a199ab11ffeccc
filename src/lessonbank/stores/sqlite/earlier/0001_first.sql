-- Records are the truth: experiences.record, trajectories.record, recalls.record, settlements.record, journal.entry.
-- items, attempts, vectors, word_index and the sums in scopes can be rebuilt from them.

CREATE TABLE scopes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,   -- of the scope's last journal entry
    revision INTEGER NOT NULL DEFAULT 0,   -- grows with every change that ranking must know of
    documents INTEGER NOT NULL DEFAULT 0,  -- experiences, and
    words INTEGER NOT NULL DEFAULT 0       -- the words of their tasks: BM25 needs both
);

-- The long columns come last, so that ranking does not read through them.
CREATE TABLE experiences (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    created_at INTEGER NOT NULL,           -- microseconds since 1970, UTC
    active INTEGER NOT NULL,               -- whether it has an item that may be shown
    words INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    task TEXT NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (scope, id)
);
CREATE INDEX experiences_by_age ON experiences (scope, created_at, number);
CREATE INDEX experiences_by_revision ON experiences (scope, revision);

CREATE TABLE items (
    scope INTEGER NOT NULL,
    id TEXT NOT NULL,
    experience INTEGER NOT NULL REFERENCES experiences,
    retired INTEGER NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX items_by_experience ON items (experience);

CREATE TABLE attempts (
    scope INTEGER NOT NULL,
    trajectory TEXT NOT NULL,              -- an id; the run itself need not be kept here
    experience INTEGER NOT NULL REFERENCES experiences,
    waiting INTEGER NOT NULL,              -- whether this experience leaves it pending
    PRIMARY KEY (scope, trajectory, experience)
) WITHOUT ROWID;
CREATE INDEX attempts_by_experience ON attempts (experience);

CREATE TABLE trajectories (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    kept_at INTEGER NOT NULL,
    pending INTEGER NOT NULL,
    id TEXT NOT NULL,
    record BLOB NOT NULL,                  -- zlib over JSON
    UNIQUE (scope, id)
);
CREATE INDEX trajectories_pending ON trajectories (scope, number) WHERE pending = 1;

CREATE TABLE spaces (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    name TEXT NOT NULL,
    dimensions INTEGER,                    -- unknown before the first vector
    epoch INTEGER NOT NULL DEFAULT 0,      -- grows when what was read before must be forgotten
    UNIQUE (scope, name)
);

CREATE TABLE vectors (
    number INTEGER PRIMARY KEY,
    space INTEGER NOT NULL REFERENCES spaces,
    experience INTEGER NOT NULL REFERENCES experiences,
    vector BLOB NOT NULL,                  -- little-endian float32, length 1
    UNIQUE (space, experience)
);
CREATE INDEX vectors_by_experience ON vectors (experience);

-- Every word carries the number of its scope, so that no statistic of another scope can be read off it.
CREATE VIRTUAL TABLE word_index USING fts5 (words, content = '', columnsize = 0, tokenize = 'ascii');
CREATE VIRTUAL TABLE word_places USING fts5vocab (word_index, instance);

CREATE TABLE recalls (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (scope, id)
);

CREATE TABLE settlements (
    scope INTEGER NOT NULL REFERENCES scopes,
    recall TEXT NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (scope, recall)
);

CREATE TABLE journal (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL REFERENCES scopes,
    sequence INTEGER NOT NULL,             -- 1, 2, 3, … in each scope
    at INTEGER NOT NULL,
    writer TEXT NOT NULL,
    entry TEXT NOT NULL,
    UNIQUE (scope, sequence)
);

CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL);
