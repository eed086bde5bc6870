// Package schema has the tables that leases live in, for PostgreSQL, for MySQL and MariaDB, and for SQLite.
//
// # Use
//
// A program that takes leases calls Apply as it starts:
//
//	err := schema.Apply(ctx, db, schema.Postgres, schema.Tables{})
//
// [Apply] creates the tables, [Check] says what is wrong with them, and [Print] writes their definition. A migration
// tool runs the files in [Files], and the command line has sqllock schema apply, check and print. Nothing else in
// this module creates or alters a table.
//
// A program that takes locks needs SELECT, INSERT, UPDATE and DELETE on sqllock_lease, sqllock_lock and
// sqllock_permit, and SELECT on sqllock_version. Only a role that applies needs the right to create tables. Apply by
// any other role succeeds when there is nothing to do.
//
// # Versions
//
// The files of a dialect are numbered from 0001, and sqllock_version says which have been applied. A later release
// adds files and never edits an old one. Files that bring nothing new can always be run again.
//
// The tables have two numbers: their version, and the lowest version of a program that may use them. [Version] is
// what this release writes. An older program works on newer tables if their lowest version is not above its own. Its
// Apply then changes nothing and succeeds, so a rollback of a program does not fail. Tables whose lowest version is
// above that of the program are refused (sqllock.ErrSchema) with the request to upgrade it.
//
// Nothing is promised before v0.1.0. From then on docs/upgrading.md says for each release whether the tables are
// applied before or after the new programs start.
//
// # Who may change what
//
// Rows belong to package leasetable. By hand:
//   - reading is always safe, and needs no lock;
//   - deleting a row of sqllock_lease makes its owner lose every lock that hangs on it, at the owner's next renewal;
//   - deleting a row of sqllock_permit takes the share or permit away from its holder, who learns of it only when it
//     asks;
//   - deleting a row of sqllock_lock, or lowering its token, lets tokens repeat, and a resource that is fenced by
//     them can then be written by a stale holder.
//
// Columns may be added if they allow NULL or have a default, and so may indexes, triggers and grants; Check does not
// mind them. What the files define is to be left as it is.
//
// # The tables
//
//	sqllock_lease    one row per lease: who is alive, and until when
//	sqllock_lock     one row per name: its fencing token, and the lease that holds it
//	sqllock_permit    one row per share or permit of a name that several hold together
//	sqllock_version  one row per numbered file that has been applied, and the lowest version that a program has to know then
//
// Many locks hang on one lease, so a renewal is one small UPDATE however many locks are held. A lock's row outlives
// the lock, because its token must only ever rise. The meaning of each column stands in the SQL files and, where the
// database can keep it, in the comment of the column.
//
// Times are timestamptz in PostgreSQL, DATETIME(6) in UTC in MySQL and MariaDB, and whole microseconds since 1970 in
// UTC in SQLite. They are always taken from the database's clock.
package schema
