package locktest

import (
	"database/sql"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Traps makes operators, functions and types in the schema public of a PostgreSQL database, as anybody who may create them
// there could. Each fails when it is used. They have the names of operators, and of the functions that files call, and
// take the types that statements use: PostgreSQL prefers them to its own where a statement leaves that open.
func Traps(t *testing.T, db *sql.DB, patterns ...string) {
	t.Helper()
	var names []string
	for _, pattern := range patterns {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, call := range calls.FindAllSubmatch(text, -1) {
				names = append(names, string(call[1]))
			}
		}
	}
	slices.Sort(names)
	text := strings.ReplaceAll(makeTraps, "NAMES", strings.Join(slices.Compact(names), ","))
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}

// calls matches the name of a function that is called, and some keywords, whose traps nobody can call.
var calls = regexp.MustCompile(`\b([a-z]\w*)\(`)

// makeTraps also makes domains: a call with one untyped argument is a cast if there is a type of that name. An aggregate
// may have arguments of the type unknown, which is that of a constant in quotes.
const makeTraps = `DO $$
DECLARE
  types text[] := '{integer,bigint,numeric,double precision,text,varchar,bytea,timestamptz,interval}';
  fails text := 'RETURNS boolean LANGUAGE plpgsql AS ''BEGIN RAISE EXCEPTION ''''a trap''''; END''';
  step text := 'RETURNS boolean LANGUAGE sql AS ''SELECT public.trap(1, 1)''';
  aggregate text := '(SFUNC = public.step, STYPE = boolean, INITCOND = false)';
  called text;
  l text;
  r text;
BEGIN
  FOREACH l IN ARRAY types LOOP
    FOREACH r IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION public.trap(%s, %s) %s', l, r, fails);
      FOREACH called IN ARRAY '{+,-,*,/,<<,>>,&,|,||,=,<>,<,<=,>,>=}'::text[] LOOP
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.trap)', called, l, r);
      END LOOP;
    END LOOP;
    EXECUTE format('CREATE FUNCTION public.step(boolean, %s, anyelement) %s', l, step);
  END LOOP;
  EXECUTE format('CREATE FUNCTION public.step(boolean, anyelement, integer) %s', step);
  EXECUTE format('CREATE FUNCTION public.step(boolean, anyelement, anyelement, boolean) %s', step);
  FOREACH called IN ARRAY '{NAMES}'::text[] LOOP
    EXECUTE format('CREATE DOMAIN public.%I AS text CHECK (public.trap(VALUE, VALUE))', called);
    FOREACH l IN ARRAY types || '{bigint[],bytea[]}' LOOP
      EXECUTE format('CREATE FUNCTION public.%I(%s) %s', called, l, fails);
    END LOOP;
    FOREACH l IN ARRAY types LOOP
      EXECUTE format('CREATE FUNCTION public.%I(%s, varchar) %s', called, l, fails);
      EXECUTE format('CREATE FUNCTION public.%I(%s, integer) %s', called, l, fails);
      EXECUTE format('CREATE AGGREGATE public.%I(%s, unknown) %s', called, l, aggregate);
    END LOOP;
    EXECUTE format('CREATE AGGREGATE public.%I(unknown, integer) %s', called, aggregate);
    EXECUTE format('CREATE AGGREGATE public.%I(unknown, unknown, boolean) %s', called, aggregate);
  END LOOP;
END $$`
