// Command report draws the newest run into docs/performance, and writes its tables into docs/performance.md:
//
//	go run ./report [-i results/FILE.json] [-page ../docs/performance.md]
//
// The drawings are in a folder that is named like the page. No number of the page is typed by hand.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/sqllock/sqllock/bench/internal/draw"
	"github.com/sqllock/sqllock/bench/internal/page"
	"github.com/sqllock/sqllock/bench/internal/result"
)

func main() {
	input := flag.String("i", "", "the run; the newest of results/*.json by default")
	document := flag.String("page", "../docs/performance.md", "the document")
	flag.Parse()
	if err := report(*input, *document); err != nil {
		log.Fatal(err)
	}
}

func report(input, document string) error {
	r, err := result.Newest("results")
	if input != "" {
		r, err = result.Read(input)
	}
	if err != nil {
		return err
	}
	text, err := os.ReadFile(document) //nolint:gosec // of the caller
	if err != nil {
		return err
	}
	filled, err := page.Fill(string(text), r)
	if err != nil {
		return fmt.Errorf("%s: %w", document, err)
	}
	if err := os.WriteFile(document, []byte(filled), 0o644); err != nil { //nolint:gosec // it is no secret
		return err
	}
	if r == nil {
		return nil
	}
	folder := strings.TrimSuffix(document, ".md")
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // it is no secret
		return err
	}
	return draw.All(r, folder)
}
