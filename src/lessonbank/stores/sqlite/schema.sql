-- The truth: journal.entry, trajectories.record, recalls.record, and the vectors, which only an embedder could make again.
-- Everything else follows from these. An `entry` and a `record` is plain JSON, and the column before it the CRC-32 of its
-- UTF-8: behind a large text, SQLite would read that whole text to reach it. `sum` is the checksum of those columns of a row that nothing else in the file could contradict (see _checks.py).

CREATE TABLE scopes (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    sequence INTEGER NOT NULL DEFAULT 0,   -- of the scope's last journal entry
    documents INTEGER NOT NULL DEFAULT 0,  -- experiences, and
    words INTEGER NOT NULL DEFAULT 0,      -- the words of their tasks: BM25 needs both
    sum INTEGER NOT NULL                   -- of the name
) STRICT;

CREATE TABLE journal (
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
CREATE INDEX journal_rollbacks ON journal (number) WHERE kind = 'rollback';

-- Narrow on purpose: ranking looks into thousands of these rows for one answer. The text of the task is a table apart.
-- An experience that a rollback took out has its scope negated: nothing that asks for a scope sees it, and what is
-- costly to make again (words, vectors) stays for the day it comes back.
CREATE TABLE experiences (
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
CREATE TABLE tasks (
    number INTEGER PRIMARY KEY,            -- of the experience
    task TEXT NOT NULL
) STRICT;
CREATE INDEX experiences_not_shown ON experiences (scope) WHERE active = 0;

CREATE TABLE lessons (
    scope INTEGER NOT NULL,                -- minus the number of its experience, if that is taken out
    id TEXT NOT NULL,
    experience INTEGER NOT NULL,
    place INTEGER NOT NULL,                -- 1, 2, 3, … in its experience
    retired INTEGER NOT NULL,              -- 1; or 2 for a quarantined lesson, which is not shown either
    state TEXT NOT NULL,                   -- probation, active, quarantined or retired
    created_at INTEGER NOT NULL,           -- of the lesson itself
    kind TEXT NOT NULL,
    writer TEXT NOT NULL,
    wording TEXT NOT NULL,                 -- the name of its words, see guard/wording.py
    PRIMARY KEY (scope, id)
) WITHOUT ROWID, STRICT;
CREATE INDEX lessons_by_wording ON lessons (scope, wording);
CREATE INDEX items_by_state ON lessons (scope, state, created_at, experience, place);

-- Lessons that an experience taught again: it holds no copy of them, and is found as if it held them. They lie in the
-- scope of the experience, or are gone.
CREATE TABLE repeats (
    experience INTEGER NOT NULL,           -- its number, taken out or not
    lesson TEXT NOT NULL,
    PRIMARY KEY (experience, lesson)
) WITHOUT ROWID, STRICT;
CREATE INDEX repeats_by_lesson ON repeats (lesson);

CREATE TABLE attempts (
    scope INTEGER NOT NULL,                -- as in lessons
    trajectory TEXT NOT NULL,              -- an id; the run itself need not be kept here
    experience INTEGER NOT NULL,
    waiting INTEGER NOT NULL,              -- whether this experience leaves it pending
    outcome TEXT NOT NULL,
    PRIMARY KEY (scope, trajectory, experience)
) WITHOUT ROWID, STRICT;

CREATE TABLE trajectories (
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
CREATE INDEX trajectories_pending ON trajectories (scope, number) WHERE pending = 1;
CREATE INDEX trajectories_due ON trajectories (due) WHERE pending = 1;
CREATE INDEX trajectories_claimed ON trajectories (due, scope) WHERE pending = 1 AND worker IS NOT NULL;

CREATE TABLE recalls (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    id TEXT NOT NULL,
    record_sum INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (scope, id)
) STRICT;

CREATE INDEX trajectories_by_time ON trajectories (scope, kept_at);
CREATE INDEX recalls_by_time ON recalls (scope, created_at);

-- What records are found by: a digest of each key of their metadata with its value, and the lessons a recall showed.
CREATE TABLE tags (
    kind INTEGER NOT NULL,                 -- 1 a trajectory, 2 a recall, 3 an experience (taken out or not)
    tag BLOB NOT NULL,
    record INTEGER NOT NULL,               -- its number
    PRIMARY KEY (kind, tag, record)
) WITHOUT ROWID, STRICT;
CREATE INDEX tags_by_record ON tags (kind, record);
CREATE TABLE shown (
    scope INTEGER NOT NULL,
    lesson TEXT NOT NULL,
    recall INTEGER NOT NULL,               -- its number
    PRIMARY KEY (scope, lesson, recall)
) WITHOUT ROWID, STRICT;
CREATE INDEX shown_by_recall ON shown (recall);
CREATE TRIGGER trajectory_gone AFTER DELETE ON trajectories BEGIN
    DELETE FROM tags WHERE kind = 1 AND record = old.number;
END;
CREATE TRIGGER recall_gone AFTER DELETE ON recalls BEGIN
    DELETE FROM tags WHERE kind = 2 AND record = old.number;
    DELETE FROM shown WHERE recall = old.number;
END;
CREATE TRIGGER experience_gone AFTER DELETE ON experiences BEGIN
    DELETE FROM tags WHERE kind = 3 AND record = old.number;
    DELETE FROM repeats WHERE experience = old.number;
END;

CREATE TABLE settlements (
    scope INTEGER NOT NULL,
    recall TEXT NOT NULL,
    entry INTEGER NOT NULL,                -- the journal entry that holds it
    PRIMARY KEY (scope, recall)
) WITHOUT ROWID, STRICT;

CREATE TABLE spaces (
    number INTEGER PRIMARY KEY,
    scope INTEGER NOT NULL,
    name TEXT NOT NULL,
    dimensions INTEGER,                    -- unknown before the first vector
    epoch INTEGER NOT NULL DEFAULT 0,      -- grows when what was read before must be forgotten
    sum INTEGER NOT NULL,                  -- of scope, name and dimensions
    UNIQUE (scope, name)
) STRICT;

CREATE TABLE vectors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- grows with every vector placed
    space INTEGER NOT NULL,
    key INTEGER NOT NULL,                  -- the experience's number * 4096, plus the place of a lesson
    vector BLOB NOT NULL,                  -- see to_blobs in _vectors.py
    sum INTEGER NOT NULL,                  -- of space, key and vector
    UNIQUE (space, key)
) STRICT;
CREATE INDEX vectors_by_space ON vectors (space);

-- Every word carries the number of its scope, so that no statistic of another scope can be read off it. A word that a
-- task holds again and again is put in once, and once more with how often that is: see `task_terms` in _rows.py. A row
-- is the number of an experience * 4096, plus how many words its task has (4095: or more).
CREATE VIRTUAL TABLE word_index USING fts5 (
    words, content = '', columnsize = 0, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE word_places USING fts5vocab (word_index, instance);
-- Which experiences hold a word in one of their lessons, taken out or not.
CREATE VIRTUAL TABLE lesson_index USING fts5 (
    words, content = '', columnsize = 0, detail = none, tokenize = 'ascii'
);
CREATE VIRTUAL TABLE lesson_counts USING fts5vocab (lesson_index, row);
-- Tasks and lessons of experiences above this number are in no index yet: they are few, and read one by one.
CREATE TABLE indexed (upto INTEGER NOT NULL) STRICT;
INSERT INTO indexed (upto) VALUES (0);

CREATE TABLE settings (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL,
    sum INTEGER NOT NULL                   -- of both
) STRICT;
