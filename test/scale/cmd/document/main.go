// Command document writes the results of benchmarks into the sections of a document that are marked for them.
package main

import (
	"flag"
	"fmt"
	"os"

	"millwright.dev/test/scale/report"
)

func main() {
	into := flag.String("into", "docs/performance.md", "the document")
	flag.Parse()
	if err := run(*into, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "document:", err)
		os.Exit(1)
	}
}

func run(path string, results []string) error {
	files := make([]report.File, 0, len(results))
	for _, result := range results {
		file, err := report.ReadFile(result)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	document, err := os.ReadFile(path) // the document is named by whoever runs the command
	if err != nil {
		return err
	}
	updated, err := report.Document(string(document), files)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644) // a document is for all to read
}
