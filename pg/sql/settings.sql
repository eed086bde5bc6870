-- Sets up a dedicated session, with the settings that this version of the server has. $1 is the session TTL in
-- milliseconds, $2 the application_name, $3 whether the server has no idle_session_timeout: TCP then finds out that the
-- client is gone, no sooner than after the TTL. Time limits meant for the application's statements must not hit ours.
-- pgx reads and writes text only in the formats set here. Without check_function_bodies, the expressions of a block are
-- parsed when they run, and not once more before.
-- Keeps I3.
SELECT set_config(name, value, false)
FROM (VALUES
  ('application_name', $2::text),
  ('statement_timeout', '0'),
  ('lock_timeout', '0'),
  ('transaction_timeout', '0'),
  ('idle_in_transaction_session_timeout', '0'),
  ('client_connection_check_interval', '0'),
  ('default_transaction_isolation', 'read committed'),
  ('check_function_bodies', 'off'),
  ('search_path', 'pg_catalog'),
  ('client_encoding', 'UTF8'),
  ('standard_conforming_strings', 'on'),
  ('DateStyle', 'ISO, MDY'),
  ('idle_session_timeout', CASE WHEN $3::boolean THEN '0' ELSE $1::int::text END),
  ('tcp_user_timeout', CASE WHEN $3::boolean THEN $1::int::text END),
  ('tcp_keepalives_idle', CASE WHEN $3::boolean THEN ceil($1::numeric / 2e3)::text END),
  ('tcp_keepalives_interval', CASE WHEN $3::boolean THEN ceil($1::numeric / 6e3)::text END),
  ('tcp_keepalives_count', CASE WHEN $3::boolean THEN '3' END)
) AS setting (name, value)
JOIN pg_settings USING (name)
WHERE value IS NOT NULL
