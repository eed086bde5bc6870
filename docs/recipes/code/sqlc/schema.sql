CREATE TABLE IF NOT EXISTS reports (id integer PRIMARY KEY, text text NOT NULL);
