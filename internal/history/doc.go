// Package history checks from the answers of clients that a lock never had two holders.
//
// [Run] makes several processes contend for a few names while its nemesis kills them with signal 9, stops them, cuts
// them off from the server, makes the server end their connections, or does some other [Harm]. A child process runs
// [Serve] and does one thing at a time for each of its workers: it acquires a lock, checks whether the lock's context
// is alive, and releases it. A child process that runs [ServeWriters] also writes to a [Register] meanwhile. The parent
// sends the requests and records, on one clock, when it sent each and when it read the answer. [History] turns the
// record into operations, and porcupine searches for an order of them in which no two locks overlap, or in which there
// are never more holders than allowed.
//
// # What is claimed
//
// An answer is a claim about some moment between the request and the answer, no matter how long the process was stopped
// in between:
//
//   - taken: at some moment the lock began.
//   - alive (its context had not ended): at some later moment it was held.
//   - written, to a guarded register: at some later moment it was held.
//   - outdone, according to a register that compares tokens: at some moment there was a later lock.
//   - released (Release returned nil): it was held until some moment.
//
// If locks can be extended and handed over (a [Mover]):
//
//   - extended: at some later moment it was held. For that duration after the request nobody else acquires it,
//     whatever happens to its holder, unless it is released.
//   - exported: it was held until some moment. Its holder does not hold it any more, even if nobody has
//     adopted it yet. For the lifetime of the ticket, from the request on, nobody else acquires the name.
//   - adopted: until some moment nobody had acquired the name, and nobody had adopted the ticket. A new lock
//     began, with the next token.
//   - over (according to its context, or to an error of the lock or of the ticket): at some moment there was a
//     later lock, or the promised time had passed.
//
// The run also asks old holders again, and tries adopted tickets again. If a release says that the lock was lost
// although it cannot have expired, the table must confirm this: the token must have risen.
//
// If locks have tokens, each is higher than that of the previous lock. [CheckJournal] checks the written lines
// separately: whatever the answers said, no line may follow one with a higher token.
//
// A lock that was not released in this way may end at any time after its last claim, because its process was killed,
// its connection ended, or the release failed. Nothing else needs to be known about it, in particular not when the
// server noticed. An operation with an unknown outcome, such as the acquisition of a process that was killed before it
// answered, claims nothing and is left out: no answer ever says that the process holds that lock. A refusal claims
// nothing either, because the locks of dead holders count as held for a while; that every name becomes free in the end
// is checked separately. An extension, an export, an adoption or a release with an unknown outcome ends earlier
// promises at its request.
//
// If several clients can hold a name together (a [Sharer]), there are never more holders than the limit of any of them,
// a reader and a writer never hold the name at the same time, and tokens rise from each acquisition to the next. A line
// of the journal may then follow one with a higher token, if both locks could be held at the same time. But the number
// of writers that alternate is never larger than the number of allowed holders.
//
// # What is forgiven
//
// A holder whose connection was ended on the server learns of it a little later: on PostgreSQL when it reads the
// server's last message, on MySQL with the next heartbeat, and in any case before its trust in the session ends, which
// is less than a session TTL after the end of the connection. Until then its context is alive although there may be a
// new holder. So the answer "alive" about a lost lock does not count from the moment the nemesis begins to end a
// connection, anyone's, until a session TTL after the server has said that it is done. Nothing is forgiven to a process
// that was stopped or cut off: its trust ends before the server ends its session. An extended lock has a longer TTL,
// and its promise ends where forgiving begins.
//
// The same applies to a lease that ends without its holder: by a forced release, or because the server's clock was set
// ahead. But tokens exist for exactly that case: writes and releases are never forgiven.
//
// # How long it takes
//
// A run takes some seconds. With SQLLOCK_TEST_HISTORY=100000 it continues until it has read that many answers other
// than errors, and the nemesis does correspondingly more.
package history
