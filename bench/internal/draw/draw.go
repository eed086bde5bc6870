// Package draw draws the figures of a run as SVG.
package draw

import (
	"fmt"
	"image/color"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	vgdraw "gonum.org/v1/plot/vg/draw"

	"github.com/sqllock/sqllock/bench/internal/lock"
	"github.com/sqllock/sqllock/bench/internal/page"
	"github.com/sqllock/sqllock/bench/internal/result"
)

// All draws all figures of a run into files of a folder.
func All(r *result.Result, folder string) error {
	for _, e := range lock.Engines() {
		if _, ok := r.Servers[string(e)]; !ok || e == lock.Etcd { // which is drawn with Redis
			continue
		}
		for _, c := range []curves{
			{"names", "pairs_s", "goroutines of one process, each with a name of its own", "acquire and release, pairs a second"},
			{"one name", "pairs_s", "goroutines of one process, one name", "acquire and release, pairs a second"},
			{"fleet", "handoffs_s", "processes, one name, each holds it for 1 ms", "handoffs a second"},
			{"waiting", "statements_s", "processes that wait while one holds", "statements a second"},
		} {
			if len(r.Sizes(c.scenario)) == 0 {
				continue
			}
			file := page.File(c.scenario, e)
			if err := c.draw(r, e, filepath.Join(folder, file)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	for _, d := range []dots{
		{"latency.svg", "acquire and release, alone, µs", true, []series{{"latency", "pair_us", ""}}},
		{"fault.svg", "seconds until the next one has the lock; a triangle: not by then", false, []series{
			{"fault/kill", "next_s", "killed"}, {"fault/stop", "next_s", "stopped"}, {"fault/cut", "next_s", "cut off"},
		}},
		{"network.svg", "round trips of a network that takes 25 ms each way", true, []series{
			{"network", "first_rt", "first acquire"}, {"network", "acquire_rt", "acquire"}, {"network", "handover_rt", "handover"},
		}},
	} {
		if err := d.draw(r, filepath.Join(folder, d.file)); err != nil {
			return fmt.Errorf("%s: %w", d.file, err)
		}
	}
	return nil
}

// colors are told apart by most people who do not see all colours (Okabe and Ito).
var colors = []color.Color{
	color.RGBA{0x99, 0x99, 0x99, 0xff},
	color.RGBA{0x00, 0x72, 0xb2, 0xff},
	color.RGBA{0xd5, 0x5e, 0x00, 0xff},
	color.RGBA{0x00, 0x9e, 0x73, 0xff},
	color.RGBA{0xcc, 0x79, 0xa7, 0xff},
	color.RGBA{0xe6, 0x9f, 0x00, 0xff},
	color.RGBA{0x56, 0xb4, 0xe9, 0xff},
}

// constant are ticks at given places.
func constant(at []float64) plot.ConstantTicks {
	var ticks []plot.Tick
	for _, v := range at {
		ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
	}
	return ticks
}

// decades are the powers of ten from min to max.
func decades(lowest, highest float64) (ticks plot.ConstantTicks) {
	for v := 0.001; v <= highest*1.001; v *= 10 {
		if v >= lowest*0.999 {
			ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprintf("%.6g", v)})
		}
		for i := 2.0; i < 10; i++ {
			if v*i < lowest || v*i > highest {
				continue
			}
			tick := plot.Tick{Value: v * i}
			if highest < 100*lowest && (i == 2 || i == 5) {
				tick.Label = fmt.Sprintf("%.6g", v*i)
			}
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// logarithmic makes an axis logarithmic.
func logarithmic(a *plot.Axis) {
	a.Scale = plot.LogScale{}
	a.Tick.Marker = plot.TickerFunc(func(lowest, highest float64) []plot.Tick { return decades(lowest, highest) })
}

func grid() *plotter.Grid {
	g := plotter.NewGrid()
	for _, line := range []*vgdraw.LineStyle{&g.Horizontal, &g.Vertical} {
		line.Color = color.Gray{0xdd}
		line.Dashes = nil
		line.Width = vg.Points(0.5)
	}
	return g
}
