// Package picture draws the panels of a dashboard.
package picture

import (
	"fmt"
	"image/color"
	"io"
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sqllock/sqllock/otellock/demo/internal/prom"
)

// Panel is a panel with its lines. Its times are drawn as minutes.
type Panel struct {
	Title     string
	Unit      string
	Lines     []Line
	Threshold *float64  // a value that is marked
	Marks     []float64 // times that are marked
}

// Line is a line of a panel.
type Line struct {
	Name   string
	Points []prom.Point
}

const (
	width  = 480
	height = 230
	small  = 8
)

var grey = color.Gray{0xdd}

// Draw writes the panels as an SVG, in rows of two. began is the time that is drawn as 0.
func Draw(w io.Writer, panels []Panel, began time.Time) error {
	rows := (len(panels) + 1) / 2
	canvas := vgsvg.New(2*width, vg.Length(rows)*height)
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Path())
	for i, panel := range panels {
		p, err := panel.plot(began)
		if err != nil {
			return fmt.Errorf("%s: %w", panel.Title, err)
		}
		x, y := vg.Length(i%2)*width, vg.Length(rows-1-i/2)*height
		p.Draw(draw.Crop(all, x+10, x+width-2*width-10, y+10, y+height-vg.Length(rows)*height-10))
	}
	_, err := canvas.WriteTo(w)
	return err
}

// plot draws one panel, with room for its legend at the right.
func (p Panel) plot(began time.Time) (*plot.Plot, error) {
	out := plot.New()
	out.Title.Text, out.Title.TextStyle.Font.Size = p.Title, 11
	out.Title.TextStyle.Font.Variant, out.Title.TextStyle.Font.Weight = "Sans", 0
	for _, axis := range []*plot.Axis{&out.X, &out.Y} {
		axis.Tick.Label.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: small}
		axis.Color, axis.Tick.Color = color.Gray{0x88}, color.Gray{0x88}
	}
	out.Y.Tick.Marker = ticks{unit: map[string]string{"s": " s", "reqps": "/s", "ops": "/s"}[p.Unit], most: math.Inf(1)}
	if p.Unit == "" {
		out.Y.Tick.Marker = ticks{} // the values mean nothing
	}
	out.Legend.TextStyle.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: small}
	out.Legend.Top, out.Legend.ThumbnailWidth, out.Legend.Padding = true, 12, 2
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Transparent, grey
	out.Add(grid)

	minutes := func(t time.Time) float64 { return t.Sub(began).Minutes() }
	last, longest := 0.0, 0
	for i, line := range p.Lines {
		longest = max(longest, len(line.Name))
		for _, points := range pieces(line.Points) {
			xys := make(plotter.XYs, len(points))
			for j, point := range points {
				xys[j] = plotter.XY{X: minutes(point.At), Y: point.Value}
				last = max(last, xys[j].X)
			}
			if len(xys) == 1 { // a line needs two
				xys = append(xys, plotter.XY{X: xys[0].X + .05, Y: xys[0].Y})
			}
			l, err := plotter.NewLine(xys)
			if err != nil {
				return nil, err
			}
			l.Color, l.Width = plotutil.SoftColors[i%len(plotutil.SoftColors)], 1.4
			out.Add(l)
			if &points[0] == &line.Points[0] {
				out.Legend.Add(line.Name, l)
			}
		}
	}
	out.Y.Min, out.X.Min = 0, 0
	out.Y.Max = max(out.Y.Max*1.05, 1e-3)
	out.X.Max = last / (1 - vg.Length(longest*small/2+30).Points()/width) // with a place for the legend
	out.X.Tick.Marker = ticks{unit: " min", most: last}
	return out, p.mark(out, last)
}

// mark draws the threshold and the marks.
func (p Panel) mark(out *plot.Plot, last float64) error {
	dashed := func(from, to plotter.XY, c color.Color) error {
		l, err := plotter.NewLine(plotter.XYs{from, to})
		if err != nil {
			return err
		}
		l.Color, l.Width, l.Dashes = c, .7, []vg.Length{3, 3}
		out.Add(l)
		return nil
	}
	if p.Threshold != nil {
		if err := dashed(plotter.XY{Y: *p.Threshold}, plotter.XY{X: last, Y: *p.Threshold}, color.RGBA{R: 0xcc, A: 0xff}); err != nil {
			return err
		}
	}
	top := out.Y.Max
	for _, at := range p.Marks {
		if err := dashed(plotter.XY{X: at}, plotter.XY{X: at, Y: top}, color.Gray{0xaa}); err != nil {
			return err
		}
	}
	return nil
}

// pieces splits points where some are missing, as where a lock was not held.
func pieces(points []prom.Point) (all [][]prom.Point) {
	from := 0
	for i := 1; i <= len(points); i++ {
		if i == len(points) || points[i].At.Sub(points[i-1].At) > prom.Interval+time.Second {
			all = append(all, points[from:i])
			from = i
		}
	}
	return all
}

// ticks labels the values of an axis with their unit, up to the most of them.
type ticks struct {
	unit string
	most float64
}

func (t ticks) Ticks(from, to float64) []plot.Tick {
	var labelled []plot.Tick
	for _, tick := range (plot.DefaultTicks{}).Ticks(from, to) {
		if tick.Label == "" || tick.Value > t.most || t == (ticks{}) {
			continue
		}
		tick.Label = strconv.FormatFloat(math.Round(tick.Value*1e4)/1e4, 'f', -1, 64) + t.unit
		labelled = append(labelled, tick)
	}
	return labelled
}
