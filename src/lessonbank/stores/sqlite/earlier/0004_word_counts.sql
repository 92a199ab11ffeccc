-- How many documents hold a word, without reading which: decides which words are worth reading.
CREATE VIRTUAL TABLE IF NOT EXISTS word_counts USING fts5vocab (word_index, row);
