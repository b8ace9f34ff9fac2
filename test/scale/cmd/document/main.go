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
	clouds := flag.Bool("clouds", false, "the one file has results of `make bench-clouds`: write the section about providers, and no other")
	flag.Parse()
	show := run
	if *clouds {
		show = runClouds
	}
	if err := show(*into, flag.Args()); err != nil {
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
	return rewrite(path, func(document string) (string, error) { return report.Document(document, files) })
}

func runClouds(path string, results []string) error {
	if len(results) != 1 {
		return fmt.Errorf("one file of results is needed, not %d", len(results))
	}
	file, err := report.ReadCloudFile(results[0])
	if err != nil {
		return err
	}
	return rewrite(path, func(document string) (string, error) { return report.CloudDocument(document, file) })
}

func rewrite(path string, change func(string) (string, error)) error {
	document, err := os.ReadFile(path) // the document is an argument of the command
	if err != nil {
		return err
	}
	updated, err := change(string(document))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(updated), 0o644) // a document is for all to read
}
