package console

import (
	"slices"
	"testing"
)

func TestOnWindowsTheCaseOfAnEnvironmentVariableDoesNotMatter(t *testing.T) {
	t.Parallel()
	environ := []string{`=C:=C:\x`, `LOCALAPPDATA=C:\local`, "PATH=a=b", "sqllock_token=7"}
	for _, test := range []struct {
		system, key, want string
	}{
		{"windows", "LocalAppData", `C:\local`},
		{"windows", "Path", "a=b"},
		{"windows", "SQLLOCK_TOKEN", "7"},
		{"windows", "LocalAppDat", ""},
		{"linux", "PATH", "a=b"},
		{"linux", "Path", ""},
		{"linux", "SQLLOCK_TOKEN", ""},
	} {
		if got, set := lookup(test.system, environ, test.key); got != test.want || set != (test.want != "") {
			t.Errorf("%s on %s is %q, %v, want %q", test.key, test.system, got, set, test.want)
		}
		kept := len(environ)
		if test.want != "" {
			kept--
		}
		if got := without(test.system, environ, []string{"OTHER", test.key}); len(got) != kept {
			t.Errorf("without %s on %s there is %q", test.key, test.system, got)
		}
	}
	if environ = append(environ, "LocalAppData="); !slices.Equal(without("windows", environ, []string{"LocalAppData"}), []string{environ[0], environ[2], environ[3]}) {
		t.Error("one of two with the same key is left")
	}
}
