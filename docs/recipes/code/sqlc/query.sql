-- name: SaveReport :exec
INSERT INTO reports (id, text) VALUES (1, @text) ON CONFLICT (id) DO UPDATE SET text = excluded.text;
