package schema

import "testing"

func TestATypeIsTheSameInEveryModeOfTheServer(t *testing.T) {
	t.Parallel()
	for typ, want := range map[string]string{
		"BIGINT(20)":                     "bigint",
		"bigint(20) unsigned":            "bigint unsigned",
		`"timestamp with time zone"`:     "timestamp with time zone",
		"varchar(255) binary":            "varchar(255)",
		"datetime(6) /* mariadb-5.3 */":  "datetime(6)",
		"timestamp(6) /* mariadb-5.3 */": "timestamp(6)",
	} {
		if got := plainType(typ); got != want {
			t.Errorf("plainType(%q) = %q, want %q", typ, got, want)
		}
	}
}
