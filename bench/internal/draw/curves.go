package draw

import (
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// curves is a metric by the number of callers, a curve for each kind on a server. Bars show the range of the rounds.
type curves struct{ scenario, metric, x, y string }

// least is drawn for values below, which a logarithmic axis does not have.
const least = 0.1

func (c curves) draw(r *result.Result, e lock.Engine, file string) error {
	p := plot.New()
	p.Title.Text = string(e)
	if e == lock.Redis {
		p.Title.Text = "Redis and etcd"
	}
	p.X.Label.Text, p.Y.Label.Text = c.x, c.y
	logarithmic(&p.X)
	logarithmic(&p.Y)
	var at []float64
	for _, n := range r.Sizes(c.scenario) {
		at = append(at, float64(n))
	}
	p.X.Tick.Marker = constant(at)
	p.Add(grid())
	drawn := 0
	for _, k := range lock.Kinds() {
		if k.Engine != e && (e != lock.Redis || k.Engine != lock.Etcd) {
			continue
		}
		var points ranges
		for _, n := range r.Sizes(c.scenario) {
			if s, ok := r.Of(c.scenario, k.ID(), n, c.metric); ok {
				points.add(float64(n), s)
			}
		}
		if len(points.XYs) == 0 {
			continue
		}
		if err := points.curve(p, k, e, drawn); err != nil {
			return err
		}
		drawn++
	}
	p.Y.Min = max(p.Y.Min*0.8, least/2)
	p.Y.Max *= 1.5
	p.Legend.Top = true
	p.Legend.Left = true
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	return beside(p, 20*vg.Centimeter, 10*vg.Centimeter, file)
}

// ranges are medians with the range of the rounds.
type ranges struct {
	plotter.XYs
	plotter.YErrors
}

func (r *ranges) add(x float64, s result.Summary) {
	y := max(s.Median, least)
	r.XYs = append(r.XYs, plotter.XY{X: x, Y: y})
	r.YErrors = append(r.YErrors, struct{ Low, High float64 }{y - max(s.Min, least), max(s.Max, least) - y})
}

func (r *ranges) curve(p *plot.Plot, k lock.Kind, e lock.Engine, i int) error {
	line, points, err := plotter.NewLinePoints(r.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewYErrorBars(r)
	if err != nil {
		return err
	}
	own := colors[i%len(colors)]
	line.Color, points.Color, bars.Color = own, own, own
	line.Width = vg.Points(1)
	if k.Role == lock.Library {
		line.Width = vg.Points(2.5)
	}
	if k.Role == lock.Bare {
		line.Dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	}
	points.Shape = vgdraw.CircleGlyph{}
	p.Add(line, points, bars)
	name := k.Name
	if k.Role == lock.Bare {
		name = "bare: " + name
	}
	if k.Engine != e || e == lock.Redis {
		name = strings.Join([]string{string(k.Engine), name}, ", ")
	}
	p.Legend.Add(name, line, points)
	return nil
}
