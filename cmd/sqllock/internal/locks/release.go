package locks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/console"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/database"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/flags"
	"github.com/sqllock/sqllock/internal/lockname"
	"github.com/sqllock/sqllock/leasetable"
	"github.com/sqllock/sqllock/schema"
)

const releaseHelp = `Takes the lock NAME from its holder, with --force. That does not stop the work
that the holder is doing.

A lease: the holder is told at its next renewal, within a third of its --ttl,
and sqllock run then ends its command. The token of the name rises, so that what
compares tokens, or is guarded, refuses the holder from then on. Of several who
hold the lease together all lose it; each of them is named. With --token it is
only taken if nobody has acquired it since you looked; otherwise the exit code
is 75.

A session lock, with --kind session: the session that holds it is ended by the
server, and every other lock of that session with it. Of several that share the
lock it ends one, and says how many are left. You need the privilege to do so.

That the lock is free is no error. Without --force nothing happens, and the exit
code is 64.`

// release is one call of sqllock release.
type release struct {
	*console.Console
	database.Flags
	name  string
	kind  string
	force bool
	token int64
	only  bool // if the token is this one
	json  bool
}

// jsonRelease is the JSON output of release. sqllock help json describes it.
type jsonRelease struct {
	Name        string      `json:"name"`
	NameBytes   []byte      `json:"name_base64,omitempty"`
	Kind        string      `json:"kind"`
	Was         []jsonEntry `json:"was"`
	NextToken   int64       `json:"next_token,omitempty"`
	StillShared int         `json:"still_shared,omitempty"`
}

func releaseCommand(c *console.Console) *cobra.Command {
	r := &release{Console: c, kind: database.KindLease}
	cmd := &cobra.Command{
		Use:   "release --force [flags] NAME",
		Short: "Take a lock from its holder",
		Long:  flags.Help(releaseHelp, flags.SeeAlso),
		RunE:  r.run,

		DisableFlagsInUseLine: true,
	}
	r.AddFlags(cmd)
	flags.AddChoice(cmd, &r.kind, "kind", "`kind` of lock: lease or session", database.KindLease, database.KindSession)
	cmd.Flags().Int64Var(&r.token, "token", 0, "only if the token of the lease is still `n`, as ls and show say it; the highest one if several hold it")
	cmd.Flags().BoolVar(&r.force, "force", false, "do it; without, it is only said what would be done")
	flags.AddJSON(cmd, &r.json)
	cmd.ValidArgsFunction = r.CompleteName(r.Console, cobra.ShellCompDirectiveNoFileComp)
	return cmd
}

func (r *release) run(cmd *cobra.Command, args []string) error {
	r.only = cmd.Flags().Changed("token")
	if err := r.parse(args); err != nil {
		return exit.With(exit.Usage, err)
	}
	db, err := r.OpenDatabase(cmd, r.Console)
	if err != nil {
		return err
	}
	defer db.Close()
	do := r.lease
	if r.kind == database.KindSession {
		do = r.session
	}
	text, was, err := do(cmd, db)
	switch {
	case err != nil:
		return err
	case r.json:
		was.Name, was.NameBytes, was.Kind = r.name, bytesIfNotText(r.name), r.kind
		return exit.With(exit.Output, console.WriteJSON(r.Stdout, was, "  "))
	}
	_, err = fmt.Fprintln(r.Stdout, text)
	return exit.With(exit.Output, err)
}

func (r *release) parse(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: sqllock release --force [flags] NAME")
	}
	r.name = args[0]
	if err := errors.Join(lockname.Check(r.name), r.CheckTables(r.kind)); err != nil {
		return err
	}
	switch {
	case r.only && (r.token < 1 || r.kind == database.KindSession):
		return errors.New("--token is the token of a lease, 1 or higher; a session lock has none")
	case r.force:
		return nil
	case r.kind == database.KindSession:
		return errors.New("nothing was released: this ends the session that holds the lock, and every other lock of that session; " +
			"work that its holder is doing elsewhere is not stopped. If that is what you want, add --force")
	}
	return errors.New("nothing was released: this takes the lease from its holder, or from all who hold it together, who are told only at " +
		"their next renewal, and whose work is not stopped until then; their tokens are outdated at once, so that a write that is " +
		"guarded, or fenced by the token, fails. If that is what you want, add --force")
}

// was returns the entries of a lock that was released for the JSON output: none if the lock was free.
func was(entries []entry) []jsonEntry {
	all := []jsonEntry{}
	for _, e := range entries {
		if e.state != stateFree {
			j := e.json(e.Until)
			j.LeftSeconds = nil // it was released
			all = append(all, j)
		}
	}
	return all
}

// lease takes a lease from its holder. It returns what it did, as a message and as JSON.
func (r *release) lease(cmd *cobra.Command, db *database.Database) (string, jsonRelease, error) {
	locker, err := r.Leases(cmd.Context(), db)
	if err != nil {
		return "", jsonRelease{}, err
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	var only []leasetable.ForceOption
	if r.only {
		only = append(only, leasetable.IfToken(r.token))
	}
	info, err := locker.ForceRelease(cmd.Context(), r.name, only...)
	switch {
	case errors.Is(err, sqllock.ErrHeld):
		return "", jsonRelease{}, exit.With(exit.Held, fmt.Errorf("nothing was released: %w", err))
	case errors.Is(err, sqllock.ErrSchema):
		return "", jsonRelease{}, exit.With(exit.Unavailable, r.SchemaError(err))
	case err != nil:
		return "", jsonRelease{}, exit.With(exit.Unavailable, err)
	}
	result := jsonRelease{Was: was(leaseEntries([]leasetable.Info{info}))}
	if len(result.Was) > 0 {
		result.NextToken = nextToken(info)
	}
	return released(info), result, nil
}

// nextToken returns the lowest token of an acquisition that begins after the release, which itself has bumped it by one.
func nextToken(was leasetable.Info) int64 { return was.Token + 2 }

// released describes a forced release: who held the lease, and what happens to the holders and to their tokens.
func released(was leasetable.Info) string {
	entries := leaseEntries([]leasetable.Info{was})
	how, after := "was taken from", "it is told at its next renewal, and until then its work goes on; its token is outdated, and "
	if len(entries) > 1 {
		after = "each of them is told at its next renewal, and until then its work goes on; their tokens are outdated, and "
	}
	switch entries[0].state {
	case stateFree:
		return fmt.Sprintf("lease %s was free", quoted(was.Name))
	case stateKept:
		how, after = "was kept after its release:", ""
	case stateExpired:
		how, after = "had expired:", ""
	}
	var lines []string
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("lease %s %s %s", quoted(was.Name), how, console.Printable(e.String())))
	}
	return strings.Join(append(lines, fmt.Sprintf("%sthe next token is %d or higher", after, nextToken(was))), "\n")
}

// session ends the session that holds the lock. It returns what it did, as lease does.
func (r *release) session(cmd *cobra.Command, db *database.Database) (string, jsonRelease, error) {
	locker, err := db.Session(database.LookTTL, database.Operator, false)
	if err != nil {
		return "", jsonRelease{}, exit.With(exit.Usage, err)
	}
	defer func() { _ = locker.Close() }() // it holds nothing
	holder, ended, err := locker.Terminate(cmd.Context(), r.name)
	switch {
	case err != nil:
		return "", jsonRelease{}, exit.With(exit.Unavailable, err)
	case !ended:
		return fmt.Sprintf("session lock %s was free", quoted(r.name)), jsonRelease{Was: was(nil)}, nil
	}
	one := entry{name: r.name, kind: database.KindSession, state: stateHeld, Holder: database.Unsigned(r.name, holder)}
	result := jsonRelease{Was: was([]entry{one}), StillShared: r.left(cmd.Context(), db, locker)}
	text := fmt.Sprintf("session lock %s was taken by ending the session of %s", quoted(r.name), console.Printable(one.String()))
	if result.StillShared > 0 {
		text += fmt.Sprintf("\nit is still shared by others: %d; each call ends one of them", result.StillShared)
	}
	return text, result, nil
}

// left returns how many sessions still share the lock on PostgreSQL, or 0 if that cannot be queried: the result of
// Terminate is valid either way.
func (r *release) left(ctx context.Context, db *database.Database, locker database.SessionLocker) int {
	if db.Dialect != schema.Postgres {
		return 0 // MySQL and MariaDB have no shared session locks
	}
	serverName, err := db.ServerNames(ctx)
	if err != nil {
		return 0
	}
	left, _ := holdersOf(ctx, locker, serverName(r.name))
	return len(slices.DeleteFunc(left, func(e entry) bool { return !e.shared }))
}

// quoted returns a text of other users for a sentence.
func quoted(text string) string { return console.Shortened(strconv.Quote(text), 100) }
