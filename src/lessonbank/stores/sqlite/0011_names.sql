-- Puts the tables of format 11 in the place of those of format 10, which took their indexes and triggers with them.

ALTER TABLE journal_11 RENAME TO journal;
ALTER TABLE experiences_11 RENAME TO experiences;
ALTER TABLE trajectories_11 RENAME TO trajectories;
ALTER TABLE recalls_11 RENAME TO recalls;
CREATE INDEX journal_rollbacks ON journal (number) WHERE kind = 'rollback';
CREATE INDEX experiences_not_shown ON experiences (scope) WHERE active = 0;
CREATE INDEX trajectories_pending ON trajectories (scope, number) WHERE pending = 1;
CREATE INDEX trajectories_due ON trajectories (due) WHERE pending = 1;
CREATE INDEX trajectories_claimed ON trajectories (due, scope) WHERE pending = 1 AND worker IS NOT NULL;
CREATE INDEX trajectories_by_time ON trajectories (scope, kept_at);
CREATE INDEX recalls_by_time ON recalls (scope, created_at);
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
