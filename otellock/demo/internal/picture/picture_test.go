package picture_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/otellock/demo/internal/picture"
	"github.com/sqllock/sqllock/otellock/demo/internal/prom"
)

func TestPanelsAreDrawn(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var points []prom.Point
	for i := range 20 {
		if i < 5 || i > 9 { // with a gap
			points = append(points, prom.Point{At: began.Add(time.Duration(i) * prom.Interval), Value: float64(i)})
		}
	}
	limit := 6.0
	var svg strings.Builder
	err := picture.Draw(&svg, []picture.Panel{
		{Title: "Time left", Unit: "s", Threshold: &limit, Marks: []float64{1}, Lines: []picture.Line{{Name: "web-1 lease", Points: points}}},
		{Title: "Locks lost"},
		{Title: "One more"},
	}, began)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(svg.String())); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range []string{"Time left", "web-1 lease", " s<", "Locks lost", "One more"} {
		if !strings.Contains(svg.String(), text) {
			t.Errorf("the picture lacks %q", text)
		}
	}
}
