package console

import "testing"

func TestOnlyWhatHasChangedIsPainted(t *testing.T) {
	t.Parallel()
	before := []Row{{"a lock", Bold}, {"nightly  13s", Plain}, {"Zoë  13s", Plain}, {"more", Plain}}
	for _, test := range []struct {
		after []Row
		want  string
	}{
		{before, ""},
		{[]Row{before[0], {"nightly  12s", Plain}, before[2], before[3]}, "\x1b[2;11H2s"},
		{[]Row{before[0], {"nightly  9s", Plain}, before[2], before[3]}, "\x1b[2;10H\x1b[K9s"},
		{[]Row{before[0], {"nightly  4s !", Red}, before[2], before[3]}, "\x1b[2;1H\x1b[31mnightly  4s !\x1b[m"},
		{[]Row{before[0], before[1], {"Zoë  12s", Plain}}, "\x1b[3;3H\x1b[Kë  12s\x1b[4;1H\x1b[K"},
		{[]Row{before[0], before[1], {"Zoe    1s", Plain}, before[3]}, "\x1b[3;3He    1s"},
		{[]Row{before[0], before[1], {"Zo   1s", Plain}, before[3]}, "\x1b[3;3H\x1b[K   1s"},
	} {
		if got := paint(before, test.after); got != test.want {
			t.Errorf("%v: it writes %q, want %q", test.after, got, test.want)
		}
	}
}

func TestNothingIsLeftOfWideCharacters(t *testing.T) {
	t.Parallel()
	if got := paint([]Row{{"日本語", Plain}}, []Row{{"abcd", Plain}}); got != "\x1b[1;1H\x1b[Kabcd" {
		t.Errorf("it writes %q", got)
	}
}
