package draw

import (
	"os"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// dots is a row for each kind, with a dot for each series, and bars for the range of the rounds.
type dots struct {
	file, x string
	log     bool
	series  []series
}

type series struct{ scenario, metric, name string }

func (d dots) draw(r *result.Result, file string) error {
	var kinds []lock.Kind
	for _, k := range lock.Kinds() {
		for _, s := range d.series {
			if _, ok := r.Of(s.scenario, k.ID(), 0, s.metric); ok {
				kinds = append(kinds, k)
				break
			}
		}
	}
	if len(kinds) == 0 {
		return nil
	}
	p := plot.New()
	p.X.Label.Text = d.x
	p.Add(grid())
	for i, s := range d.series {
		if err := d.add(p, r, s, i, kinds); err != nil {
			return err
		}
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[len(kinds)-1-i] = string(k.Engine) + ", " + k.Name
	}
	p.NominalY(names...)
	p.Y.Min, p.Y.Max = -0.7, float64(len(kinds))-0.3
	if d.log {
		logarithmic(&p.X)
		p.X.Min, p.X.Max = p.X.Min*0.8, p.X.Max*1.2
	} else {
		p.X.Min = 0
	}
	p.Legend.TextStyle.Font.Size = vg.Points(8)
	return beside(p, 20*vg.Centimeter, vg.Length(len(kinds))*0.55*vg.Centimeter+2*vg.Centimeter, file)
}

// horizontal are medians with the range of the rounds.
type horizontal struct {
	plotter.XYs
	plotter.XErrors
}

func (d dots) add(p *plot.Plot, r *result.Result, s series, i int, kinds []lock.Kind) error {
	var points horizontal
	var never plotter.XYs
	for row, k := range kinds {
		y := float64(len(kinds)-1-row) - 0.2*(float64(i)-float64(len(d.series)-1)/2)
		if v, ok := r.Of(s.scenario, k.ID(), 0, s.metric); ok {
			points.XYs = append(points.XYs, plotter.XY{X: v.Median, Y: y})
			points.XErrors = append(points.XErrors, struct{ Low, High float64 }{v.Median - v.Min, v.Max - v.Median})
		}
		if v, ok := r.Of(s.scenario, k.ID(), 0, "not_by_s"); ok {
			never = append(never, plotter.XY{X: v.Max, Y: y})
		}
	}
	own := colors[i+1]
	if len(points.XYs) > 0 {
		scatter, err := plotter.NewScatter(points.XYs)
		if err != nil {
			return err
		}
		bars, err := plotter.NewXErrorBars(points)
		if err != nil {
			return err
		}
		scatter.Color, bars.Color = own, own
		scatter.Shape, scatter.Radius = vgdraw.CircleGlyph{}, vg.Points(2.5)
		p.Add(bars, scatter)
		if s.name != "" {
			p.Legend.Add(s.name, scatter)
		}
	}
	if len(never) > 0 {
		scatter, err := plotter.NewScatter(never)
		if err != nil {
			return err
		}
		scatter.Color, scatter.Shape, scatter.Radius = own, vgdraw.TriangleGlyph{}, vg.Points(3)
		p.Add(scatter)
	}
	return nil
}

// beside writes a plot to an SVG file, with its legend beside it.
func beside(p *plot.Plot, width, height vg.Length, file string) error {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	canvas := vgsvg.New(width, height)
	whole := vgdraw.New(canvas)
	whole.SetColor(p.BackgroundColor)
	whole.Fill(whole.Rectangle.Path())
	right := legend.Rectangle(whole).Size().X
	if right > 0 {
		right += vg.Centimeter
	}
	p.Draw(vgdraw.Crop(whole, vg.Points(8), -right-vg.Points(8), vg.Points(4), -vg.Points(4)))
	legend.Top, legend.Left = true, false
	legend.Padding = vg.Points(3)
	legend.Draw(vgdraw.Crop(whole, 0, -vg.Points(8), 0, -vg.Centimeter))
	f, err := os.Create(file) //nolint:gosec // the caller's file
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(f); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
