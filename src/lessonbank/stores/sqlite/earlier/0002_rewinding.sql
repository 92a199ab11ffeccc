-- What a rollback needs. It takes experiences out by turning the sign of their scope, so that nothing that asks for a
-- scope sees them, and what is costly to make again (words, vectors) stays for the day they come back. Their items and
-- attempts wait under the negative number of their experience.

-- Which experiences a journal entry wrote: follows from the journal.
CREATE TABLE touched (
    scope INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    experience INTEGER NOT NULL,           -- its number
    whole INTEGER NOT NULL,                -- whether the entry holds the record, or only flips items of it
    PRIMARY KEY (scope, sequence, experience)
) WITHOUT ROWID;
CREATE INDEX touched_by_experience ON touched (experience, sequence);

-- Which version of an experience was taken out: the sequence of the last entry that had written it.
CREATE TABLE removed (experience INTEGER PRIMARY KEY, version INTEGER NOT NULL);

CREATE INDEX journal_rollbacks ON journal (scope, sequence) WHERE substr(entry, 1, 18) = '{"kind":"rollback"';
