-- Fills `touched` from the journal: once in a file that was made before it, and again in every rebuild.

INSERT OR IGNORE INTO touched (scope, sequence, experience, whole)
SELECT j.scope, j.sequence, e.number, 1 FROM journal j
JOIN experiences e ON e.scope IN (j.scope, -j.scope) AND e.id = json_extract(j.entry, '$.experience.id');

-- Entries that flip items touch every experience that ever held one of them: one too many does no harm.
INSERT OR IGNORE INTO touched (scope, sequence, experience, whole)
SELECT flips.scope, flips.sequence, held.experience, 0
FROM (
    SELECT j.scope AS scope, j.sequence AS sequence, f.value AS item FROM journal j, json_each(j.entry, '$.item_ids') f
    UNION
    SELECT j.scope, j.sequence, f.value FROM journal j, json_each(j.entry, '$.source_item_ids') f
) flips
JOIN (
    SELECT DISTINCT j.scope AS scope, json_extract(i.value, '$.id') AS item, e.number AS experience
    FROM journal j
    JOIN experiences e ON e.scope IN (j.scope, -j.scope) AND e.id = json_extract(j.entry, '$.experience.id'),
    json_each(j.entry, '$.experience.items') i
) held ON held.scope = flips.scope AND held.item = flips.item;
