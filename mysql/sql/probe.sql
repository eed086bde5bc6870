-- Returns what this connection really talks to. The second column of each row is text on every version.
SHOW GLOBAL VARIABLES
WHERE Variable_name IN ('version', 'version_comment', 'read_only', 'innodb_read_only',
                        'wsrep_provider', 'wsrep_on', 'group_replication_group_name')
