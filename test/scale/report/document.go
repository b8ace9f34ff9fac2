package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// section is a part of a document that is written from results: what is between <!-- bench:NAME --> and
// <!-- bench:end -->, on lines of their own.
var section = regexp.MustCompile(`(?s)(<!-- bench:([a-z0-9-]+) -->\n).*?(<!-- bench:end -->)`)

// ReadFile reads what a benchmark has written.
func ReadFile(path string) (File, error) {
	var f File
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return f, errors.Wrap(err, "reading results")
	}
	return f, errors.Wrapf(json.Unmarshal(content, &f), "parsing %s", path)
}

// Document returns a document whose sections show the results. Results of one core alone at rising N are the growth.
// It is an error when a section has no results, or results have no section: a document shows all of one
// measurement.
func Document(document string, files []File) (string, error) {
	sections, err := sectionsOf(files)
	if err != nil {
		return "", err
	}
	shown := map[string]bool{}
	var missing []string
	document = section.ReplaceAllStringFunc(document, func(whole string) string {
		parts := section.FindStringSubmatch(whole)
		text, found := sections[parts[2]]
		if !found {
			missing = append(missing, parts[2])
		}
		shown[parts[2]] = true
		return parts[1] + text + parts[3]
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("there are no results for the sections %s", strings.Join(missing, ", "))
	}
	for _, name := range sortedKeys(sections) {
		if !shown[name] {
			return "", fmt.Errorf("the document has no section <!-- bench:%s -->", name)
		}
	}
	return document, nil
}

// cloudSection is the part of a document that shows what providers cost in calls to their cloud.
var cloudSection = regexp.MustCompile(`(?s)(<!-- clouds -->\n).*?(<!-- clouds:end -->)`)

// CloudDocument returns a document whose section about providers shows the results. It is an error when there is none.
func CloudDocument(document string, file CloudFile) (string, error) {
	if !cloudSection.MatchString(document) {
		return "", errors.New("the document has no section <!-- clouds -->")
	}
	return cloudSection.ReplaceAllStringFunc(document, func(whole string) string {
		parts := cloudSection.FindStringSubmatch(whole)
		return parts[1] + CloudSection(file) + parts[2]
	}), nil
}

// sectionsOf writes all sections, by name.
func sectionsOf(files []File) (map[string]string, error) {
	var r Results
	for i := range files {
		if growing(files[i].Runs) {
			r.Growth = append(r.Growth, files[i].Runs...)
		} else {
			r.Compared = append(r.Compared, files[i].Runs...)
		}
	}
	if len(r.Compared) == 0 || len(r.Growth) == 0 {
		return nil, errors.New("a document needs a comparison of the cores and the growth of ours")
	}
	sections := map[string]string{
		"measured": written(func(out io.Writer) { writeMeasured(out, files) }),
		"goals":    written(func(out io.Writer) { Goals(out, r) }),
		"growth":   written(func(out io.Writer) { writeGrowthTable(out, byN(r.Growth)) }),
	}
	for _, g := range groups(r.Compared) {
		sections[fmt.Sprintf("%s-%d", g.setting, g.n)] = written(func(out io.Writer) {
			writeComparison(out, g)
			fmt.Fprintln(out)
			writePeaks(out, g)
		})
	}
	return sections, nil
}

func written(write func(io.Writer)) string {
	var text strings.Builder
	write(&text)
	return text.String()
}

// growing reports whether runs are of ours alone, at more than one N.
func growing(runs []Run) bool {
	sizes := map[int]bool{}
	for i := range runs {
		if runs[i].Core != "ours" {
			return false
		}
		sizes[runs[i].N] = true
	}
	return len(sizes) > 1
}

// String describes the machine.
func (h Host) String() string {
	memory := float64(h.Memory) / (mebibyte * kibibyte)
	return fmt.Sprintf("%d CPUs (%s), %.0f GiB of memory, Linux %s, %s", h.CPUs, h.Model, memory, h.Kernel, h.Go)
}

// writeMeasured writes the machine, the date and the versions of a measurement.
func writeMeasured(out io.Writer, files []File) {
	hosts, versions, first := map[string]bool{}, map[string]bool{}, time.Time{}
	for _, f := range files {
		hosts[f.Host.String()] = true
		for i := range f.Runs {
			run := &f.Runs[i]
			versions[run.Core+" "+run.Version] = true
			if first.IsZero() || run.Started.Before(first) {
				first = run.Started
			}
		}
	}
	fmt.Fprintf(out, "Measured on %s, on %s. The cores were %s.\n", first.Format(time.DateOnly),
		strings.Join(sortedKeys(hosts), "; and on "), strings.Join(sortedKeys(versions), ", "))
}
