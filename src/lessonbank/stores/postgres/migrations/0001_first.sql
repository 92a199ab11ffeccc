-- The truth: journal.entry, trajectories.record, recalls.record, experiences.record, and the vectors, which only an
-- embedder could make again. Everything else follows from these. A `record` is packed, until step 2.
-- Scope is the partition and the shard key: every table but four small ones is hash-partitioned by it, and every index
-- begins with it. Texts hold \1b where a NUL was, and \1a where a \1 was: PostgreSQL keeps no NUL.

CREATE SEQUENCE lessonbank.numbers;        -- of runs and receipts: a later one is greater

CREATE TABLE lessonbank.settings (key text COLLATE "C" PRIMARY KEY, value text NOT NULL);

CREATE TABLE lessonbank.scopes (
    scope text COLLATE "C" PRIMARY KEY,
    sequence bigint NOT NULL DEFAULT 0,    -- of the scope's last journal entry
    documents bigint NOT NULL DEFAULT 0,   -- experiences, and
    words bigint NOT NULL DEFAULT 0,       -- the words of their tasks: BM25 needs both
    numbers bigint NOT NULL DEFAULT 0      -- the last that an experience got: 1, 2, 3, … in each scope
);

CREATE TABLE lessonbank.journal (
    scope text COLLATE "C" NOT NULL,
    sequence bigint NOT NULL,              -- 1, 2, 3, … in each scope
    at bigint NOT NULL,                    -- microseconds since 1970, UTC
    kind text COLLATE "C" NOT NULL,
    writer text NOT NULL,
    whole bigint[] NOT NULL DEFAULT '{}',  -- numbers of the experiences this entry holds whole (mostly one),
    part bigint[] NOT NULL DEFAULT '{}',   -- and of those it changes without holding them
    entry bytea NOT NULL,
    PRIMARY KEY (scope, sequence)
) PARTITION BY HASH (scope);
CREATE INDEX journal_by_kind ON lessonbank.journal (scope, kind, sequence);

CREATE TABLE lessonbank.experiences (
    scope text COLLATE "C" NOT NULL,
    number bigint NOT NULL,
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    shown boolean NOT NULL,                -- whether a lesson may be shown that it has, or that it taught again
    gone boolean NOT NULL DEFAULT false,   -- a rollback took it out: nothing finds it, its vectors stay for its return
    words integer NOT NULL,
    entry bigint NOT NULL,                 -- sequence of the last journal entry that wrote it
    tags bytea[] NOT NULL,                 -- a digest of each key of its metadata with its value
    record bytea NOT NULL,
    PRIMARY KEY (scope, number),
    UNIQUE (scope, id)
) PARTITION BY HASH (scope);
CREATE INDEX experiences_by_time ON lessonbank.experiences (scope, created_at, number);
CREATE INDEX experiences_by_entry ON lessonbank.experiences (scope, entry);

CREATE TABLE lessonbank.lessons (          -- of experiences that are not gone
    scope text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    experience bigint NOT NULL,
    place integer NOT NULL,                -- 1, 2, 3, … in its experience
    state text COLLATE "C" NOT NULL,       -- probation, active, quarantined or retired
    created_at bigint NOT NULL,            -- of the lesson itself
    kind text COLLATE "C" NOT NULL,
    writer text NOT NULL,
    wording text COLLATE "C" NOT NULL,     -- the name of its words, see guard/wording.py
    seen bit(1024) NOT NULL,               -- which words it may hold, see _seen.py
    PRIMARY KEY (scope, id)
) PARTITION BY HASH (scope);
CREATE INDEX lessons_by_experience ON lessonbank.lessons (scope, experience, place);
CREATE INDEX lessons_by_wording ON lessonbank.lessons (scope, wording);
CREATE INDEX lessons_by_state ON lessonbank.lessons (scope, state, created_at, experience, place);

CREATE TABLE lessonbank.repeats (          -- lessons that an experience taught again, and holds no copy of
    scope text COLLATE "C" NOT NULL,
    lesson text COLLATE "C" NOT NULL,
    experience bigint NOT NULL,
    PRIMARY KEY (scope, lesson, experience)
) PARTITION BY HASH (scope);
CREATE INDEX repeats_by_experience ON lessonbank.repeats (scope, experience);

CREATE TABLE lessonbank.attempts (
    scope text COLLATE "C" NOT NULL,
    trajectory text COLLATE "C" NOT NULL,  -- an id; the run itself need not be kept here
    experience bigint NOT NULL,
    waiting boolean NOT NULL,              -- whether this experience leaves it pending
    outcome text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, trajectory, experience)
) PARTITION BY HASH (scope);
CREATE INDEX attempts_by_experience ON lessonbank.attempts (scope, experience);

CREATE TABLE lessonbank.trajectories (
    scope text COLLATE "C" NOT NULL,
    number bigint NOT NULL DEFAULT nextval('lessonbank.numbers'),
    id text COLLATE "C" NOT NULL,
    kept_at bigint NOT NULL,
    pending boolean NOT NULL,
    due bigint,                            -- no worker takes it before; null: none does (unfinished, or given up)
    worker text,                           -- who took it; it is theirs until it is due again
    tries integer NOT NULL DEFAULT 0,
    error text,                            -- why the last try failed
    leader bigint,                         -- the number of the first run that was kept with it, if that is another
    tags bytea[] NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (scope, id)
) PARTITION BY HASH (scope);
CREATE INDEX trajectories_by_time ON lessonbank.trajectories (scope, kept_at, number);
CREATE INDEX trajectories_pending ON lessonbank.trajectories (scope, number) WHERE pending;
CREATE INDEX trajectories_claimed ON lessonbank.trajectories (scope, due) WHERE pending AND worker IS NOT NULL;
-- The only index that does not begin with the scope: a worker asks what is due in all of them.
CREATE INDEX trajectories_due ON lessonbank.trajectories (due, number) WHERE pending;

CREATE TABLE lessonbank.recalls (
    scope text COLLATE "C" NOT NULL,
    number bigint NOT NULL DEFAULT nextval('lessonbank.numbers'),
    id text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    settled bigint,                        -- sequence of the journal entry with its latest settlement
    tags bytea[] NOT NULL,
    record bytea NOT NULL,
    PRIMARY KEY (scope, id)
) PARTITION BY HASH (scope);
CREATE INDEX recalls_by_time ON lessonbank.recalls (scope, created_at, number);

CREATE TABLE lessonbank.shown (            -- the lessons that a recall showed
    scope text COLLATE "C" NOT NULL,
    lesson text COLLATE "C" NOT NULL,
    recall bigint NOT NULL,
    PRIMARY KEY (scope, lesson, recall)
) PARTITION BY HASH (scope);
CREATE INDEX shown_by_recall ON lessonbank.shown (scope, recall);

CREATE TABLE lessonbank.terms (            -- the words of tasks, of experiences that are not gone
    scope text COLLATE "C" NOT NULL,
    word text COLLATE "C" NOT NULL,
    experience bigint NOT NULL,
    times integer NOT NULL,
    words integer NOT NULL,                -- of the whole task
    PRIMARY KEY (scope, word, experience) INCLUDE (times, words)
) PARTITION BY HASH (scope);

CREATE TABLE lessonbank.postings (         -- words that many tasks have: rows of `terms`, packed
    scope text COLLATE "C" NOT NULL,
    word text COLLATE "C" NOT NULL,
    first bigint NOT NULL,                 -- no place is of an experience before this one, or
    last bigint NOT NULL,                  -- after this one
    held integer NOT NULL,                 -- how many places
    places bytea NOT NULL,                 -- of each: experience, times, words of the whole task; four bytes each
    PRIMARY KEY (scope, word, first)
) PARTITION BY HASH (scope);
ALTER TABLE lessonbank.postings ALTER COLUMN places SET STORAGE EXTERNAL;

CREATE TABLE lessonbank.spaces (
    scope text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    dimensions integer NOT NULL,
    tasks_checked bigint NOT NULL DEFAULT 0,    -- no task that a journal entry up to this one wrote lacks a vector,
    lessons_checked bigint NOT NULL DEFAULT 0,  -- and no lesson
    PRIMARY KEY (scope, space)
);

CREATE TABLE lessonbank.vectors (
    scope text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    experience bigint NOT NULL,
    place integer NOT NULL,                -- of a lesson, or 0 for the task
    shown boolean NOT NULL,
    unit vector NOT NULL,                  -- of length 1
    PRIMARY KEY (scope, space, experience, place)
) PARTITION BY HASH (scope);
ALTER TABLE lessonbank.vectors ALTER COLUMN unit SET STORAGE MAIN;
CREATE INDEX vectors_by_experience ON lessonbank.vectors (scope, experience);

-- Who may see what. A role that is not in here is the owner's or has no rights at all, see `admit`. A transaction sees the
-- scope that `lessonbank.scope` names, and every one where that is `*` and its role may.
CREATE TABLE lessonbank.roles (
    role text PRIMARY KEY,
    prefix text,                           -- the scope, with all below it, that the role is bound to
    every_scope boolean NOT NULL           -- may list scopes and take runs of any of them
);

CREATE FUNCTION lessonbank.current_scope() RETURNS text STABLE SECURITY DEFINER SET search_path = pg_catalog
LANGUAGE sql AS $$
    SELECT s FROM (SELECT nullif(current_setting('lessonbank.scope', true), '') AS s) asked
    WHERE NOT EXISTS (SELECT 1 FROM lessonbank.roles r WHERE r.role = session_user AND r.prefix IS NOT NULL
                      AND NOT (s = r.prefix OR starts_with(s, r.prefix || '/')))
$$;
CREATE FUNCTION lessonbank.sees_every_scope() RETURNS boolean STABLE SECURITY DEFINER SET search_path = pg_catalog
LANGUAGE sql AS $$
    SELECT current_setting('lessonbank.scope', true) = '*' AND (pg_has_role(session_user, nspowner, 'USAGE')
        OR EXISTS (SELECT 1 FROM lessonbank.roles r WHERE r.role = session_user AND r.every_scope))
    FROM pg_namespace WHERE nspname = 'lessonbank'
$$;

CREATE FUNCTION lessonbank.admit(role text, prefix text DEFAULT NULL, every_scope boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO lessonbank.roles AS r VALUES (admit.role, admit.prefix, admit.every_scope)
    ON CONFLICT ON CONSTRAINT roles_pkey DO UPDATE SET prefix = excluded.prefix, every_scope = excluded.every_scope;
    EXECUTE format('GRANT USAGE ON SCHEMA lessonbank TO %I', admit.role);
    EXECUTE format('GRANT USAGE ON SEQUENCE lessonbank.numbers TO %I', admit.role);
    EXECUTE format('GRANT SELECT ON lessonbank.migrations TO %I', admit.role);
    EXECUTE format('GRANT SELECT, INSERT ON lessonbank.journal TO %I', admit.role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE ON lessonbank.scopes, lessonbank.experiences, lessonbank.trajectories,'
        ' lessonbank.recalls TO %I', admit.role);
    EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON lessonbank.settings, lessonbank.lessons,'
        ' lessonbank.repeats, lessonbank.attempts, lessonbank.shown, lessonbank.terms, lessonbank.postings,'
        ' lessonbank.spaces, lessonbank.vectors TO %I', admit.role);
END $$;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['journal', 'experiences', 'lessons', 'repeats', 'attempts', 'trajectories', 'recalls',
                                'shown', 'terms', 'postings', 'vectors'] LOOP
        FOR n IN 0 .. {partitions} - 1 LOOP
            EXECUTE format('CREATE TABLE lessonbank.%I PARTITION OF lessonbank.%I'
                ' FOR VALUES WITH (MODULUS {partitions}, REMAINDER %s)', name || '_' || n, name, n);
        END LOOP;
    END LOOP;
    FOREACH name IN ARRAY ARRAY['scopes', 'journal', 'experiences', 'lessons', 'repeats', 'attempts', 'trajectories',
                                'recalls', 'shown', 'terms', 'postings', 'spaces', 'vectors'] LOOP
        EXECUTE format('ALTER TABLE lessonbank.%I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE lessonbank.%I FORCE ROW LEVEL SECURITY', name);
        -- As a subquery, the function is called once for a statement and not once for a row.
        EXECUTE format('CREATE POLICY one_scope ON lessonbank.%I USING (scope = (SELECT lessonbank.current_scope()))',
            name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['scopes', 'spaces', 'trajectories'] LOOP
        EXECUTE format('CREATE POLICY every_scope ON lessonbank.%I'
            ' USING ((SELECT lessonbank.sees_every_scope()))', name);
    END LOOP;
END $$;
