// Package sqltest gives a test a real database in one line:
//
//	func TestOrders(t *testing.T) {
//		t.Parallel()
//		db := sqltest.Postgres(t) // or MySQL, MariaDB, SQLite
//		if _, err := db.Exec("CREATE TABLE orders (id int PRIMARY KEY)"); err != nil {
//			t.Fatal(err)
//		}
//		shop := Open(db.DSN) // the code under test may open it, too
//		…
//	}
//
// The database is empty, or has what a migration makes: see [Template]. The migration runs once, and each test gets a copy.
//
// The database is closed when the test ends, and no other test sees what it has left there. If the test has left connections
// to it open, they are listed in the test's log and closed. All tests of a run share one server per engine, including
// tests of different packages, which the go command runs as different processes. A test that stops, kills or pauses its
// server, or steps its clock, starts one of its own with [Start]. [Network] has the faults of a network.
//
// A test may ask for a [Version] of the server, for an [Extension], and for a [Setting]. [Start] also has [TLS],
// [Database.User] has users with few rights, [Database.PgBouncer] has a pooler in between, and
// [Server.Standby] has a standby.
//
// # How long a test waits
//
// While tests use databases of one kind, the next ones are made ahead, up to four in each process, and those of tests that
// have ended are dropped in the background. So in the median a test waits for less than a quarter of what CREATE DATABASE …
// TEMPLATE and DROP DATABASE take on PostgreSQL. On MySQL and MariaDB, a database of a template that has been used is made
// like new for a later test: it is compared with the template, and the tables whose rows differ are filled again. It then has
// the same name as before. If a definition differs, or a connection to it was left open, it is dropped.
//
// On a server named by a DSN, whatever a process has made is dropped before its last test ends, except templates. Databases
// are made ahead there only while several tests run at once.
//
// # When a test fails
//
// The log of a failed test shows the statements that were running in its database, which sessions were waiting for which, and
// the last lines that the server has logged meanwhile. [Database.Log] returns all of them.
//
// # Where the server comes from
//
// There are three ways to get a server. They are tried in this order unless an environment variable chooses one:
//
//   - a server that is already running, named by its DSN. Its user must be allowed to
//     create databases. Nothing is left on it, except templates, which are named
//     sqltest_template_…. What a killed test process has left, the next one drops
//     (not on Galera and Group Replication, where it cannot see who is alive).
//   - Docker: a container with the image postgres:17, mysql:8.4 or mariadb:11.4,
//     which is pulled if needed, or with another image. Its port is published on
//     127.0.0.1 only (unless DOCKER_HOST or TESTCONTAINERS_HOST_OVERRIDE name
//     another machine). Where the shared
//     server answers at the container's own address, as on Linux, tests connect
//     there, which is faster.
//   - programs installed on this machine, started in a temporary folder and on a
//     free port of 127.0.0.1: PostgreSQL's in /usr/lib/postgresql/*/bin (the
//     highest version) or on the PATH, mariadbd with mariadb-install-db, or
//     MySQL's mysqld. They run as another user if the test runs as root.
//
// If none of them works, the test fails and lists what was tried. These environment variables control the choice:
//
//	SQLTEST_POSTGRES   one of:
//	SQLTEST_MYSQL        a DSN, such as postgres://user:password@host/postgres,
//	SQLTEST_MARIADB        user:password@tcp(host:3306)/?parseTime=true, as other servers
//	                       have it, or mysql://user:password@host/?parseTime=true
//	                     docker, or docker:IMAGE (also with a digest)
//	                     programs, or programs:FOLDER
//	                     skip: tests of this engine are skipped
//	SQLTEST_SQLITE=skip  tests of SQLite are skipped, which needs no server
//	SQLTEST_SKIP=1     a test that finds no server is skipped, not failed
//	SQLTEST_KEEP=1     the database of a failed test is kept, and its DSN logged
//
// Failures and logs show such a DSN without its password; [Database].DSN has it. Where the password stands alone, it is hidden if
// it has eight letters or more and is not a part of the rest of the DSN.
//
// The build tags sqltest_no_postgres, sqltest_no_mysql (also for MariaDB) and sqltest_no_sqlite leave a driver out of the test
// binary. Tests of that engine then fail.
//
// The servers are tuned for tests: they accept 300 connections and do not wait for the disk, so their data survives a
// crash of the server but not of the machine. The data of the shared container is in memory. That of programs is in the
// temporary folder. TMPDIR=/dev/shm puts it into memory, too: on ext4, a third of the processor time that PostgreSQL took
// for a test run went into the search for free inodes.
//
// # What is left behind, and when
//
// Nothing is left after a run. A small script in a session of its own watches the test processes and the go command
// that runs them. It ends the server, and deletes the files of SQLite, shortly after the last of them has ended, for
// whatever reason (the end of the run, Ctrl-C, a timeout, kill -9). If the script was killed as well, or the machine was
// restarted, the next run that starts a server cleans up first. The servers are recorded in the folder sqltest-UID of the
// temporary folder ([os.TempDir]), where only its random name and some empty lock files remain. Concurrent runs share a server if they need the
// same one. They know each other by process ids: containers must not share a temporary folder, or a run in one of them ends
// the servers of a run in another. Where other machines or containers use the same Docker daemon, their containers
// are removed after a day, also those that they keep.
//
// With SQLTEST_KEEP the server of a kept database stays up after the run, until the next run without SQLTEST_KEEP. On a
// server named by a DSN the database stays until somebody drops it. A file of SQLite stays if its test failed or was killed.
//
// Where Docker can be reached but there is no docker command, the script cannot end containers. They are then started
// with an expiry of one hour, for which a goroutine waits, and the next run that starts a container removes them. A server
// of a test's own ends with it.
//
// On systems other than Unix, only SQLite and servers named by a DSN are supported. There, as without /bin/sh, the SQLite
// file of a killed test stays.
package sqltest
