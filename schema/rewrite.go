package schema

import (
	"regexp"
	"strings"
)

// tokens matches the parts of a statement that matter here: strings and quoted identifiers, comments, semicolons and
// words. A doubled quote counts as two strings side by side, which does no harm. Bodies in dollar quotes and
// backslashes in strings are not supported.
var tokens = regexp.MustCompile(`(?s)'[^']*'|"[^"]*"|` + "`[^`]*`" + `|--[^\n]*|/\*.*?\*/|;|[A-Za-z0-9_]+`)

var defaultNames = regexp.MustCompile(`\b` + defaultPrefix)

// Rewrite returns sql with the names that begin with sqllock_ replaced by those of t. The tables sqllock_lease,
// sqllock_lock, sqllock_permit and sqllock_version also get their schema; every other such name, as that of an index, gets
// none. Names are quoted where they differ from the default. Text in quotes is left alone. t must be valid.
//
// So a package can keep its statements in files that can be read and tried as they are.
func (t Tables) Rewrite(d Dialect, sql string) string {
	if t.isDefault() {
		return sql
	}
	return tokens.ReplaceAllStringFunc(sql, func(token string) string {
		if strings.HasPrefix(token, "--") || strings.HasPrefix(token, "/*") {
			return defaultNames.ReplaceAllLiteralString(token, t.prefix())
		}
		suffix, ours := strings.CutPrefix(token, defaultPrefix)
		if !ours || suffix == "" {
			return token
		}
		name := d.quote(t.prefix() + suffix)
		if t.Schema != "" && isTable(suffix) {
			name = d.quote(t.Schema) + "." + name
		}
		return name
	})
}

// statements splits sql at its semicolons, because not every driver and pooler accepts several statements at once.
// Comments before a statement stay with it.
func statements(sql string) []string {
	var found []string
	begin := 0
	for _, at := range tokens.FindAllStringIndex(sql, -1) {
		if sql[at[0]:at[1]] == ";" {
			found = append(found, strings.TrimSpace(sql[begin:at[0]]))
			begin = at[1]
		}
	}
	return found
}
