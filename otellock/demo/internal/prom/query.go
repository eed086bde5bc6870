package prom

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Series is one time series of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time. It is never NaN.
type Point struct {
	At    time.Time
	Value float64
}

// Range asks for the values of an expression from one time to another.
func (s *Server) Range(ctx context.Context, expr string, from, to time.Time) ([]Series, error) {
	query := url.Values{
		"query": {expr},
		"start": {stamp(from)}, "end": {stamp(to)},
		"step": {strconv.FormatFloat(Interval.Seconds(), 'f', -1, 64)},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/api/v1/query_range?"+query.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var answer struct {
		Error string
		Data  struct {
			Result []struct {
				Metric map[string]string
				Values [][2]any
			}
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	var all []Series
	for _, result := range answer.Data.Result {
		one := Series{Labels: result.Metric}
		for _, pair := range result.Values {
			point, err := pointOf(pair)
			if err != nil {
				return nil, err
			}
			if !math.IsNaN(point.Value) {
				one.Points = append(one.Points, point)
			}
		}
		if len(one.Points) > 0 {
			all = append(all, one)
		}
	}
	return all, nil
}

func pointOf(pair [2]any) (Point, error) {
	at, isNumber := pair[0].(float64)
	text, isText := pair[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	if !isNumber || !isText {
		err = errors.New("prometheus answers a value that is none")
	}
	return Point{time.UnixMilli(int64(at * 1000)), value}, err
}

func stamp(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }
