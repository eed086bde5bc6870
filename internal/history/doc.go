// Package history checks that a lock was never held twice, by what its clients were told.
//
// [Run] lets several processes contend for a few names while its nemesis kills them with signal 9,
// stops them, cuts them off from the server, and has the server end their connections, or does some
// other [Harm]. A child process, which runs [Serve], does one thing at a time for each of its workers:
// it takes a lock, looks whether the lock's context is alive, and releases it; one that runs
// [ServeWriters] also writes to a [Register] meanwhile. The parent tells it what to do and
// records, on one clock, when it asked and when it read the answer. [History] turns the record
// into operations, and porcupine looks for an order of them in which no two locks overlap, or no
// more than may be held together.
//
// # What is claimed
//
// The answers are claims about a moment between question and answer, however long the process was
// stopped in between:
//
//   - taken: at some moment the lock began.
//   - alive (its context had not ended): at some later moment it was held.
//   - written, to a register that is guarded: at some later moment it was held.
//   - outdone, as a register that compares tokens says: at some moment there was a later lock.
//   - released (Release returned nil): it was held until some moment.
//
// Where locks can be extended and handed over (a [Mover]):
//
//   - extended: at some later moment it was held, and nobody else gets it for so long from the question on,
//     whatever becomes of its holder, unless it is released.
//   - exported: it was held until some moment, and its holder has it no more, though nobody may have
//     adopted it yet. For the time of the ticket, from the question on, nobody else gets the name.
//   - adopted: at some moment nobody had got the name since, and nobody had adopted the ticket; a lock of its own
//     began, with the next token.
//   - over (its context or an error said so, or an error said it of the ticket): at some moment somebody
//     had followed, or what was promised had passed.
//
// An old holder is asked again, and a ticket that was adopted is tried again. A release that says that the lock was
// lost, when it cannot have expired, is compared with the table: there the token has risen.
//
// Where locks have tokens, each is higher than that of the lock before. What was written is looked
// at besides, by [CheckJournal]: whatever the clients were told, no line comes after one with a
// higher token.
//
// A lock that was not released so may end at any time after its last claim: its process was
// killed, its connection ended, the release failed. Nothing more needs to be known about it, in
// particular not when the server noticed. What is uncertain, such as the acquisition of a process
// that was killed before it answered, claims nothing and is left out: what it may have taken it
// never says it holds. A refusal claims nothing either, as the locks of the dead count as held for
// a while; that every name comes free in the end is asked for separately. An extension, an export, an adoption or
// a release of which nobody knows whether it was carried out ends what was promised before: from the question on.
//
// Where several hold a name together (a [Sharer]), there are never more of them than each of them asked for, a reader and a
// writer are not among them at the same time, and tokens rise from each that was taken to the next. A line of the journal
// may then come after one with a higher token, if both locks could be held at the same time; but no more write by turns
// than can hold the name.
//
// # What is forgiven
//
// A holder whose connection was ended on the server learns of it a little later: on PostgreSQL
// when the goodbye was read, on MySQL with the next heartbeat, in any case before its trust in
// the session ends, which is sooner than a session TTL after the connection's end. Until then
// its context is alive although somebody else may have the lock. So an answer "alive" about a lock
// that was lost does not count from the moment the nemesis began to end a connection, whosever,
// until a session TTL after the server said it was done. Nothing is forgiven to a process that was
// stopped or cut off: its trust ends before the server ends its session. The TTL of a lock that was
// extended is longer, and what was promised ends where forgiving begins.
//
// The same goes for a lease whose holder was not asked: it was released by force, or the server's
// clock was set ahead. But tokens are for just that: what was written, and what was released, is
// never forgiven.
//
// # How long it takes
//
// A run takes some seconds. With SQLLOCK_TEST_HISTORY=100000 it goes on until so many answers were
// heard that are no errors, and as much more is done to the processes.
package history
