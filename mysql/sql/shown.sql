-- Returns whether the server shows metadata locks. This statement has one itself, on the table it reads.
SELECT COUNT(*) > 0 FROM performance_schema.metadata_locks
