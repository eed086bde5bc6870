// Package schema has the tables that leases live in, for PostgreSQL, for MySQL and MariaDB, and for SQLite.
//
// # Use
//
// A program that takes leases calls Apply when it starts:
//
//	err := schema.Apply(ctx, db, schema.Postgres, schema.Tables{})
//
// [Apply] creates the tables. [Check] reports what is wrong with them. [Print] writes their definition. A migration
// tool can run the files in [Files]. The command line has sqllock schema apply, check and print. Nothing else in this
// module creates or alters a table.
//
// A program that takes locks needs SELECT, INSERT, UPDATE and DELETE on sqllock_lease, sqllock_lock and sqllock_permit,
// and SELECT on sqllock_version. Only a role that applies the files needs the right to create tables. For any other
// role Apply succeeds if there is nothing to do.
//
// # Versions
//
// The files of a dialect are numbered from 0001. The table sqllock_version lists the applied files. A later release
// adds files and never edits an old one. A later file takes a strong lock on one existing table at most. Files that add nothing new can
// always be run again.
//
// The tables have two numbers: their version, and the lowest version of a program that may use them. [Version] is what
// this release writes. An older program works on newer tables if their lowest version is not above its own. Then its
// Apply changes nothing and succeeds, so a rollback of a program does not fail. If the lowest version of the tables is
// above the version of the program, the program refuses them (sqllock.ErrSchema) and asks for an upgrade.
//
// Nothing is promised before v0.1.0. From then on docs/upgrading.md says for each release whether to apply the tables
// before or after the new programs start.
//
// # What may be changed by hand
//
// Package leasetable owns the rows. By hand:
//   - reading is always safe, and needs no lock;
//   - deleting a row of sqllock_lease makes its owner lose every lock of that lease, at the next renewal of the owner;
//   - deleting a row of sqllock_permit takes the share or permit away from its holder, who learns of it only when it
//     asks;
//   - deleting a row of sqllock_lock, or lowering its token, lets tokens repeat: a stale holder can then write to a
//     resource that is fenced by them.
//
// Columns may be added if they allow NULL or have a default. Indexes and grants may be added, too, and on PostgreSQL and
// SQLite triggers. Check does not mind them. Do not change what the files define, and add no unique index of these
// columns, no foreign key and no other constraint: statements would fail, such as one that deletes a lease to which rows of
// names still refer.
//
// On MySQL and MariaDB add no triggers: the server does not return then what a statement changed, so no name can be
// acquired, and a forced release is not told. Tools that alter a table by triggers, such as pt-online-schema-change, are
// to be used only while no program takes leases.
//
// # The tables
//
//	sqllock_lease    one row per lease: its owner, and until when it lasts
//	sqllock_lock     one row per name: its fencing token, and the lease that holds it
//	sqllock_permit   one row per share or permit of a name
//	sqllock_version  one row per applied file, and the lowest version that a program has to know after it
//
// Many locks share one lease, so a renewal is one small UPDATE however many locks are held. The row of a lock outlives
// the lock, because its token must only ever rise. The SQL files document each column and, where the database supports
// it, so does the comment of the column.
//
// Times are timestamptz in PostgreSQL, DATETIME(6) in UTC in MySQL and MariaDB, and whole microseconds since 1970 in
// UTC in SQLite. They always come from the clock of the database.
package schema
