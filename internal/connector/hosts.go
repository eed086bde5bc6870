package connector

import (
	"database/sql/driver"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"time"
)

// pgx tries the hosts of a URL one after the other. A host that does not answer uses up all the time that the caller
// has, unless a connect_timeout bounds each of them.

// ShareTime divides the time within among the hosts of config, a pointer to a configuration of pgx, unless config
// already has a timeout per host. It returns true if there are several hosts and they share the time.
func ShareTime(config any, within time.Duration) bool {
	v := reflect.ValueOf(config).Elem()
	if v.Kind() != reflect.Struct {
		return false
	}
	timeout, fallbacks := v.FieldByName("ConnectTimeout"), v.FieldByName("Fallbacks")
	if !timeout.IsValid() || timeout.Type() != reflect.TypeFor[time.Duration]() || timeout.Int() != 0 ||
		!fallbacks.IsValid() || fallbacks.Kind() != reflect.Slice {
		return false
	}
	hosts := map[string]bool{address(v): true} // the same host with and without TLS counts once
	for i := range fallbacks.Len() {
		hosts[address(reflect.Indirect(fallbacks.Index(i)))] = true
	}
	if len(hosts) == 1 {
		return false
	}
	timeout.SetInt(int64(within) / int64(len(hosts)))
	return true
}

func address(config reflect.Value) string {
	return fmt.Sprint(config.FieldByName("Host"), ":", config.FieldByName("Port"))
}

// Sharing returns a connector like c. If c is pgx's and has several hosts, they share the time within. A connector that
// was made from a configuration has no tracer: renewals and heartbeats are not the application's statements.
func Sharing(c driver.Connector, within time.Duration) driver.Connector {
	v := reflect.ValueOf(c)
	switch v.Type().String() {
	case "stdlib.connector":
		shares := reflect.New(v.Type())
		shares.Elem().Set(v)
		ShareTime(shares.Interface(), within)
		if tracer := shares.Elem().FieldByName("Tracer"); tracer.CanSet() {
			tracer.SetZero()
		}
		if own, ok := reflect.TypeAssert[driver.Connector](shares.Elem()); ok {
			c = own
		}
	case "*stdlib.driverConnector":
		dsn, _ := field[string](c, "name")
		d, ok := c.Driver().(driver.DriverContext)
		hosts := hostsOf(dsn)
		if !ok || hosts < 2 || strings.Contains(dsn, "connect_timeout") || os.Getenv("PGCONNECT_TIMEOUT") != "" {
			break
		}
		if shares, err := d.OpenConnector(withTimeout(dsn, max(within/time.Duration(hosts), time.Second))); err == nil {
			c = shares
		}
	}
	return c
}

var (
	hostsInURL  = regexp.MustCompile(`^postgres(?:ql)?://(?:[^/?#]*@)?([^/?#]*)`)
	hostsInText = regexp.MustCompile(`(?:^|[\s?&])host\s*=\s*('[^']*'|[^\s&]*)`)
)

// hostsOf counts the hosts that a DSN names.
func hostsOf(dsn string) int {
	most := 0
	for _, in := range []*regexp.Regexp{hostsInURL, hostsInText} {
		if m := in.FindStringSubmatch(dsn); m != nil {
			most = max(most, 1+strings.Count(m[1], ","))
		}
	}
	return most
}

// withTimeout adds a connect_timeout to a DSN, in whole seconds.
func withTimeout(dsn string, timeout time.Duration) string {
	by := " "
	switch {
	case hostsInURL.MatchString(dsn) && strings.Contains(dsn, "?"):
		by = "&"
	case hostsInURL.MatchString(dsn):
		by = "?"
	}
	return fmt.Sprintf("%s%sconnect_timeout=%d", dsn, by, timeout/time.Second)
}
